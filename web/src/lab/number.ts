// How numbers are written: the same digits as the command line, always with their unit.
export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? String(size) : size.toFixed(size < 10 ? 2 : 1)} ${units[unit]}`;
}

export function fixed(value: number | null | undefined, digits = 4): string {
  return value === null || value === undefined || !Number.isFinite(value) ? '–' : value.toFixed(digits);
}

export function percent(value: number | null | undefined, digits = 1): string {
  return value === null || value === undefined || !Number.isFinite(value) ? '–' : `${(100 * value).toFixed(digits)} %`;
}

export function signed(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(digits)}`;
}

export function milliseconds(value: number): string {
  return value < 10 ? `${value.toFixed(2)} ms` : value < 1000 ? `${value.toFixed(0)} ms` : `${(value / 1000).toFixed(2)} s`;
}

export function interval(pair: readonly (number | null)[] | null | undefined, digits = 4): string {
  if (!pair || pair[0] === null || pair[0] === undefined || pair[1] === null || pair[1] === undefined) return '';
  return `[${pair[0].toFixed(digits)}, ${pair[1].toFixed(digits)}]`;
}

/** 16GB, 50ms, 1e8: a number with its unit, as the command line takes it; null where it cannot be read. */
export function size(text: string): number | null {
  const found = /^\s*([0-9.]+(?:e[0-9]+)?)\s*([kMGTP]?)(i?)B?\s*$/i.exec(text);
  if (!found) return null;
  const power = ['', 'K', 'M', 'G', 'T', 'P'].indexOf((found[2] ?? '').toUpperCase());
  const value = Number(found[1]) * (found[3] ? 1024 : 1000) ** power;
  return Number.isFinite(value) && value > 0 ? Math.round(value) : null;
}
