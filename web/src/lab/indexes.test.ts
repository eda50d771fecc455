import { expect, test } from 'vitest';
import { budget, knobs, pareto, parts, told, within } from './indexes';

test('the front holds what nothing beats in both latency and overlap', () => {
  const rows = [[1, 0.8], [2, 0.9], [3, 0.85], [2, 0.95], [4, 0.95]].map(([p95_ms = 0, overlap = 0]) => ({ p95_ms, overlap }));
  expect(pareto(rows)).toEqual([{ p95_ms: 1, overlap: 0.8 }, { p95_ms: 2, overlap: 0.95 }]);
});
test('a budget without a line has none', () => {
  expect(budget('0.9', '', '')).toEqual({ recall: 0.9, latency: null, ram: null });
  expect(budget('7', '50ms', '1GB')).toEqual({ recall: 0.95, latency: 50, ram: 1e9 });
  expect(within({ p95_ms: 3, overlap: 0.96, bytes: 10 }, budget('0.95', '2', ''))).toBe(false);
  expect(within({ p95_ms: 3, overlap: 0.96, bytes: 10 }, budget('0.95', '', ''))).toBe(true);
});
test('cells cannot be more than their training points allow, nor probes more than cells', () => {
  const found = Object.fromEntries(knobs('ivf', { nlist: 100, nprobe: 8 }, 39_000).map((each) => [each.name, each.most]));
  expect(found).toEqual({ nlist: 1000, nprobe: 100 });
  expect(knobs('flat', {}, 100)).toEqual([]);
});
test('the parts of a code divide the dimensions', () => expect(parts(512)).toEqual([8, 16, 32, 64, 128, 256, 512]));
test('settings left to the library are not told', () => expect(told({ nlist: 64, rotate: null, refine: 'none', m: 8 })).toBe('nlist=64, m=8'));
