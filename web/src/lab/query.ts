// The query under the search box: its parts, and what they mean to the server and to the command line.
import type { Schemas } from '../api/client';
import { command, quote } from './command';

export interface Part {
  kind: 'text' | 'item' | 'picture';
  text?: string;
  item?: number;
  picture?: File | Blob;
  name: string;
  weight: number;
}

/** Read what was typed: `4711` or `#4711` is an item, anything else a text. */
export function typed(text: string): Part {
  const found = /^#?(\d{1,15})$/.exec(text.trim());
  if (found) return { kind: 'item', item: Number(found[1]), name: `item ${Number(found[1])}`, weight: 1 };
  return { kind: 'text', text: text.trim(), name: text.trim(), weight: 1 };
}

export function terms(parts: readonly Part[]): { terms: Schemas['QueryTerm'][]; pictures: Blob[] } {
  const pictures: Blob[] = [];
  const made = parts.map((part): Schemas['QueryTerm'] => {
    const empty = { text: null, item: null, vector: null, picture: null, weight: part.weight };
    if (part.kind === 'text') return { ...empty, text: part.text ?? '' };
    if (part.kind === 'item') return { ...empty, item: part.item ?? 0 };
    pictures.push(part.picture as Blob);
    return { ...empty, picture: pictures.length - 1 };
  });
  return { terms: made, pictures };
}

export interface Options {
  k: number;
  where: string;
  rerank: string;
  pool: number;
  encoder: string;
  expand: boolean;
}

/** The command for a query with a chosen picture, whose folder only the user knows. */
export function pictureCommand(catalogue: string, parts: readonly Part[], options: Options): string | null {
  const [first, ...rest] = parts;
  if (!first || first.weight !== 1 || options.expand || rest.some((part) => part.kind === 'item')) return null;
  const word = first.kind === 'item' ? [] : [first.name];
  const base = command('search', [catalogue, ...word], {
    item: first.kind === 'item' ? first.item : null,
    k: options.k,
    where: options.where,
    rerank: options.rerank,
    pool: options.rerank ? options.pool : null,
    encoder: options.encoder,
  });
  const added = rest.map((part) => {
    const flag = part.weight > 0 ? '--plus' : '--minus';
    const by = Math.abs(part.weight);
    return `${flag} ${quote(by === 1 ? part.name : `${by}*${part.name}`)}`;
  });
  return [base, ...added].join(' ');
}

/** Parts in the address: texts and items with their weights; pictures cannot be kept there. */
export function toParams(parts: readonly Part[]): { q: string | null } {
  const kept = parts.filter((part) => part.kind !== 'picture').map((part) => [part.kind, part.text ?? part.item, part.weight]);
  return { q: kept.length ? JSON.stringify(kept) : null };
}

export function fromParams(q: string, item: string): Part[] {
  if (/^\d{1,15}$/.test(item)) return [typed(item)];
  try {
    const rows = JSON.parse(q || '[]') as [string, string | number, number][];
    return rows
      .filter(([kind, value, weight]) => (kind === 'text' || kind === 'item') && value !== null && Number.isFinite(weight))
      .map(([kind, value, weight]) => ({ ...(kind === 'item' ? typed(String(value)) : { ...typed('x'), kind: 'text' as const, text: String(value), name: String(value) }), weight }));
  } catch {
    return [];
  }
}
