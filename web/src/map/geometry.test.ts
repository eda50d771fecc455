import { expect, test } from 'vitest';
import { sample } from './canvas';
import { byHit, byNumber } from './colours';
import { fitted, inside, lassoed, nearest, within } from './geometry';

const SQUARE = [0, 0, 2, 0, 2, 2, 0, 2];
const points = { x: Float32Array.from([1, 3, -1, 0.5]), y: Float32Array.from([1, 1, 1, 0.5]) };

test('a lasso catches what is inside it, and nothing of a hole it draws around', () => {
  expect(lassoed(points, SQUARE)).toEqual([0, 3]);
  expect(inside(1, 1, [...SQUARE, 0, 0, 0.5, 0.5, 0.5, 1.5, 1.5, 1.5, 1.5, 0.5, 0.5, 0.5])).toBe(false);
});
test('the nearest point counts only within reach', () => {
  expect(nearest(points, 0.6, 0.6, 0.5)).toBe(3);
  expect(nearest(points, 9, 9, 0.5)).toBe(-1);
});
test('a window with too many points says so instead of listing some', () => {
  expect(within(points, { left: 0, right: 2, bottom: 0, top: 2 }, 2)).toEqual([0, 3]);
  expect(within(points, { left: 0, right: 2, bottom: 0, top: 2 }, 1)).toBeNull();
});
test('both axes are scaled alike, so that distances keep their proportions', () => {
  const { x, y } = fitted(Float32Array.from([0, 10]), Float32Array.from([0, 5]));
  expect(((x[1] ?? 0) - (x[0] ?? 0)) / ((y[1] ?? 0) - (y[0] ?? 0))).toBeCloseTo(2, 5);
  expect(Math.max(...x)).toBeLessThanOrEqual(1);
});
test('the plain canvas draws at most what it can, evenly spread', () => {
  const shown = sample(100_000, 50_000);
  expect(shown.length).toBe(50_000);
  expect([shown[0], shown[1], shown[49_999]]).toEqual([0, 2, 99_998]);
  expect(Array.from(sample(3, 50_000))).toEqual([0, 1, 2]);
});
test('items that did not ask are neither found nor missed', () => {
  expect(byHit(Float32Array.from([1, 0, NaN, 0.5]), false, 'recall@5').legend.map((each) => each.count)).toEqual([2, 1, 1]);
});
test('equal numbers get one colour, and missing ones the grey', () => {
  const made = byNumber(Float32Array.from([1, 1, NaN]), false, 'norm');
  expect(Array.from(made.codes)).toEqual([0, 0, made.palette.length - 1]);
  expect(made.scale).toEqual([1, 1]);
});
