import { expect, test } from 'vitest';
import { drawn } from './draw';

test('anchor and positive share a label and differ, the negative has another', () => {
  const codes = Int32Array.from([0, 0, 1, 2, 2, -1, 1]);
  for (let seed = 0; seed < 200; seed += 1) {
    const [a, p, n] = drawn(codes, seed) ?? [-1, -1, -1];
    expect(a).not.toBe(p);
    expect(codes[a]).toBe(codes[p]);
    expect(codes[n]).not.toBe(codes[a]);
    expect(Math.min(codes[a] ?? -1, codes[n] ?? -1)).toBeGreaterThanOrEqual(0);
  }
});
test('a given anchor is kept', () => expect(drawn(Int32Array.from([0, 0, 1]), 3, 1)?.slice(0, 2)).toEqual([1, 0]));
test('without a shared label, or with one label, there is no triplet', () => {
  expect(drawn(Int32Array.from([0, 1, 2]), 0)).toBeNull();
  expect(drawn(Int32Array.from([0, 0, 0]), 0)).toBeNull();
});
