import { expect, test } from 'vitest';
import { view } from './window';

test('a grid of 100,000 items draws a few rows of them, wherever it is scrolled to', () => {
  for (const scroll of [0, 5_000, 1_000_000, 1_900_000]) {
    const now = view(100_000, 900, 116, 138, scroll, 700);
    expect(now.columns).toBe(7);
    expect(now.last - now.first).toBeLessThanOrEqual(7 * 13);
    expect(now.first % 7).toBe(0);
  }
});
test('every item is in some window, the last one too', () => {
  const now = view(100_001, 900, 116, 138, 1e9, 700);
  expect(now.last).toBe(100_001);
  expect(now.height).toBe(Math.ceil(100_001 / 7) * 138);
});
