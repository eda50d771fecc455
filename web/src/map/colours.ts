// Colours of the map: a value of a legend, or a number on a scale; the same table serves the drawing and the legend.
import type { Schemas } from '../api/client';

export interface Colouring {
  /** One index into `palette` an item. */
  codes: Uint8Array;
  palette: readonly string[];
  legend: readonly { name: string; colour: string; count: number | null }[];
  /** Numbers at both ends of the scale, where it is one. */
  scale: readonly [number, number] | null;
  note: string;
}

const LIGHT = ['#0a5ec2', '#c2541b', '#177245', '#8a3fc0', '#b81f69', '#6b7400', '#0b7c8a', '#b32b24', '#5a5f9e', '#8a5a1a', '#3f8a1f', '#a03f8f'];
const DARK = ['#6db0ff', '#f2935a', '#57c78f', '#c69bf4', '#f487bd', '#cbd155', '#5fcad8', '#ff8a82', '#a5a9ee', '#dba866', '#8fd66c', '#e48ad6'];
const GREY = { light: '#a3abb3', dark: '#5b646c' };
const STEPS = 32;
// Four stops from dark to bright, evenly rising in lightness, readable without red-green vision.
const RAMP: readonly (readonly [number, number, number])[] = [[38, 54, 120], [31, 120, 150], [92, 178, 106], [240, 215, 70]];

function ramp(share: number): string {
  const at = Math.max(0, Math.min(1, share)) * (RAMP.length - 1);
  const from = Math.min(RAMP.length - 2, Math.floor(at));
  const a = RAMP[from] ?? [0, 0, 0];
  const b = RAMP[from + 1] ?? a;
  const mixed = a.map((v, n) => Math.round(v + (at - from) * ((b[n] ?? v) - v)));
  return `#${mixed.map((v) => v.toString(16).padStart(2, '0')).join('')}`;
}

export function one(n: number, dark: boolean): Colouring {
  return { codes: new Uint8Array(n), palette: [(dark ? DARK : LIGHT)[0] ?? ''], legend: [], scale: null, note: '' };
}

/** The most frequent values get a colour each; the others share grey. */
export function byLegend(values: Int32Array, legend: Schemas['ColumnLegend'], dark: boolean): Colouring {
  const colours = dark ? DARK : LIGHT;
  const grey = dark ? GREY.dark : GREY.light;
  const named = legend.legend.slice(0, colours.length);
  const place = new Map(named.map((entry, n) => [entry.code, n]));
  const codes = Uint8Array.from(values, (code) => place.get(code) ?? named.length);
  const others = legend.legend_total - named.length;
  const rest = legend.n - named.reduce((sum, entry) => sum + entry.count, 0);
  const entries = named.map((entry, n) => ({ name: String(entry.value), colour: colours[n] ?? grey, count: entry.count as number | null }));
  if (rest > 0) entries.push({ name: others > 0 ? `${others} other values` : 'missing', colour: grey, count: rest });
  return { codes, palette: [...colours.slice(0, named.length), grey], legend: entries, scale: null, note: '' };
}

export function byNumber(values: Float32Array, dark: boolean, unit: string): Colouring {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const grey = dark ? GREY.dark : GREY.light;
  const flat = !(high - low > 1e-6 * Math.max(Math.abs(high), 1e-9));
  const codes = Uint8Array.from(values, (value) =>
    Number.isNaN(value) ? STEPS : flat ? 0 : Math.min(STEPS - 1, Math.floor((STEPS * (value - low)) / (high - low))),
  );
  const palette = [...Array.from({ length: STEPS }, (_, n) => ramp(n / (STEPS - 1))), grey];
  return { codes, palette, legend: [], scale: Number.isFinite(low) ? [low, high] : null, note: flat ? `All values are equal: ${unit}.` : unit };
}

/** hit@k of a saved run: 1 found, 0 missed, NaN did not ask. */
export function byHit(values: Float32Array, dark: boolean, metric: string): Colouring {
  const colours = dark ? ['#57c78f', '#ff8a82', GREY.dark] : ['#177245', '#c9342b', GREY.light];
  const codes = Uint8Array.from(values, (value) => (Number.isNaN(value) ? 2 : value > 0 ? 0 : 1));
  const counts = [0, 0, 0];
  for (const code of codes) counts[code] = (counts[code] ?? 0) + 1;
  const names = ['found', 'missed', 'did not ask'];
  const legend = names.map((name, n) => ({ name, colour: colours[n] ?? '', count: counts[n] ?? 0 }));
  return { codes, palette: colours, legend, scale: null, note: metric };
}

export const RAMP_CSS = `linear-gradient(to right, ${Array.from({ length: 9 }, (_, n) => ramp(n / 8)).join(', ')})`;
