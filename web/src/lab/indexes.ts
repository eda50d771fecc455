// What the index lab offers to move, by the names the library gives its settings.
import { size } from './number';

export type Value = number | boolean | string | null;
export type Settings = Record<string, Value>;

export interface Knob {
  name: string;
  what: string;
  /** Moves what one search reads; the others build the index anew. */
  effort: boolean;
  doubling: boolean;
  least: number;
  most: number;
}

const CEILING = 65_536;
/** FAISS warns below this many training points a cell. */
const POINTS_PER_CELL = 39;

export function knobs(kind: string, resolved: Settings, n: number): Knob[] {
  const nlist = Number(resolved['nlist'] ?? 1);
  const table: Record<string, Omit<Knob, 'name'>> = {
    nlist: { what: 'Cells (nlist)', effort: false, doubling: true, least: 1, most: Math.max(2, Math.min(CEILING, Math.floor(n / POINTS_PER_CELL))) },
    nprobe: { what: 'Cells read a query (nprobe)', effort: true, doubling: true, least: 1, most: Math.max(2, nlist) },
    ef_search: { what: 'Search beam (ef_search)', effort: true, doubling: true, least: 8, most: 1024 },
    k_factor: { what: 'Re-scored a result (k_factor)', effort: true, doubling: true, least: 1, most: 64 },
    ef_construction: { what: 'Build beam (ef_construction)', effort: false, doubling: true, least: 16, most: 512 },
    m: { what: 'Links a node (m)', effort: false, doubling: true, least: 4, most: 64 },
  };
  return Object.entries(table)
    .filter(([name]) => name in resolved && !(name === 'm' && !kind.startsWith('hnsw')))
    .map(([name, knob]) => ({ name, ...knob }));
}

/** Numbers of parts a product quantiser can have: the divisors of d, coarsest last. */
export function parts(dim: number): number[] {
  return Array.from({ length: dim }, (_, at) => at + 1).filter((m) => dim % m === 0 && m >= dim / 64);
}

export function readSettings(text: string): Settings {
  try {
    const found = JSON.parse(text || '{}') as Settings;
    return typeof found === 'object' && found !== null && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}

export interface Budget {
  recall: number;
  latency: number | null;
  ram: number | null;
}

export function budget(recall: string, latency: string, ram: string): Budget {
  const asked = Number(recall);
  const ms = Number(latency.replace(/ms$/i, '').trim());
  return {
    recall: asked > 0 && asked <= 1 ? asked : 0.95,
    latency: latency.trim() && Number.isFinite(ms) && ms > 0 ? ms : null,
    ram: ram.trim() ? size(ram) : null,
  };
}

/** The points nothing beats: none is both faster and nearer to exact search. */
export function pareto<T extends { p95_ms: number; overlap: number }>(rows: readonly T[]): T[] {
  const sorted = [...rows].sort((a, b) => a.p95_ms - b.p95_ms || b.overlap - a.overlap);
  let best = -1;
  return sorted.filter((row) => {
    if (row.overlap <= best) return false;
    best = row.overlap;
    return true;
  });
}

export function within(row: { p95_ms: number; overlap: number; bytes: number }, limits: Budget): boolean {
  return row.overlap >= limits.recall && (limits.latency === null || row.p95_ms <= limits.latency) && (limits.ram === null || row.bytes <= limits.ram);
}

/** `nlist=64, nprobe=8`: the settings that are not left to the library. */
export function told(settings: Settings): string {
  return Object.entries(settings)
    .filter(([, value]) => value !== null && value !== false && value !== 'none')
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');
}
