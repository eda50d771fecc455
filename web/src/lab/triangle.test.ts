import { describe, expect, test } from 'vitest';
import { cosineOf, distance, distanceOf, kindOf, laidOut, loss, moved } from './triangle';

describe('triplets', () => {
  test('cosines 0.85 and 0.78 lose 0.0844 plain and 0.06 squared at margin 0.2', () => {
    const [ap, an] = [distanceOf(0.85), distanceOf(0.78)];
    expect(loss(ap, an, 0.2)).toBeCloseTo(0.0844, 4);
    expect(loss(ap ** 2, an ** 2, 0.2)).toBeCloseTo(0.06, 12);
    expect(kindOf(ap, an, 0.2)).toBe('semi-hard');
  });
  test('a squared distance of 2 − 2·0.96 is 0.08', () => expect(distanceOf(0.96) ** 2).toBeCloseTo(0.08, 12));
  test('equal distances are hard, a kept margin is easy and costs nothing', () => {
    expect(kindOf(0.3, 0.3, 0.2)).toBe('hard');
    expect(kindOf(0.3, 0.5, 0.2)).toBe('easy');
    expect(kindOf(0.3, 0.44, 0.2)).toBe('semi-hard');
    expect(loss(0.3, 0.51, 0.2)).toBe(0);
  });
  test('the drawn triangle has exactly the three distances', () => {
    for (const [ap, an, pn] of [[0.9, 1.2, 1.1], [0.3, 0.4, 0.5], [1, 2, 1], [0, 1, 1]] as const) {
      const t = laidOut(ap, an, pn);
      expect(distance(t.a, t.p)).toBeCloseTo(ap, 12);
      expect(distance(t.a, t.n)).toBeCloseTo(an, 12);
      expect(distance(t.p, t.n)).toBeCloseTo(pn, 12);
    }
  });
  test('a corner dragged away stops where two unit vectors are opposite', () => {
    const t = moved(laidOut(0.9, 1.2, 1.1), 'n', { x: 50, y: 30 });
    expect(distance(t.a, t.n)).toBeLessThanOrEqual(2 + 1e-9);
    expect(distance(t.p, t.n)).toBeLessThanOrEqual(2 + 1e-9);
    expect(cosineOf(2)).toBe(-1);
  });
  test('distance and cosine undo one another', () => {
    for (const cosine of [-1, -0.3, 0, 0.5, 1]) expect(cosineOf(distanceOf(cosine))).toBeCloseTo(cosine, 12);
  });
});
