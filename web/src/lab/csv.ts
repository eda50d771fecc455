// Items as CSV (RFC 4180): number, path and the user's columns.
import type { Schemas } from '../api/client';

export function csv(items: readonly Schemas['Item'][]): string {
  const names = [...new Set(items.flatMap((item) => Object.keys(item.columns)))];
  const rows = items.map((item) => [item.id, item.path, ...names.map((name) => item.columns[name] ?? '')]);
  return [['id', 'path', ...names], ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

function cell(value: string | number | boolean): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
