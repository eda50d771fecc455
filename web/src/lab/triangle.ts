// Three distances between unit vectors always make a triangle in the plane: its sides are the distances, exactly.
export interface Spot {
  x: number;
  y: number;
}
export interface Triangle {
  a: Spot;
  p: Spot;
  n: Spot;
}
export type Corner = keyof Triangle;
export type Kind = 'easy' | 'semi-hard' | 'hard';

/** Two unit vectors are at most this far apart. */
export const LARGEST = 2;

export const distance = (from: Spot, to: Spot): number => Math.hypot(from.x - to.x, from.y - to.y);
/** cos = 1 − d²/2, from d² = 2 − 2·cos. */
export const cosineOf = (d: number): number => Math.max(-1, Math.min(1, 1 - (d * d) / 2));
export const distanceOf = (cosine: number): number => Math.sqrt(Math.max(0, 2 - 2 * cosine));

/** The triangle of d(a, p), d(a, n) and d(p, n): the anchor at the origin, the positive to its right. */
export function laidOut(ap: number, an: number, pn: number): Triangle {
  const cos = ap > 0 && an > 0 ? Math.max(-1, Math.min(1, (ap * ap + an * an - pn * pn) / (2 * ap * an))) : 1;
  const y = an * Math.sqrt(1 - cos * cos);
  return { a: { x: 0, y: 0 }, p: { x: ap, y: 0 }, n: { x: an * cos, y: y === 0 ? 0 : y } };
}

/** The triangle with one corner moved there, or as near as two unit vectors can be apart. */
export function moved(triangle: Triangle, corner: Corner, to: Spot): Triangle {
  const others = (['a', 'p', 'n'] as const).filter((each) => each !== corner).map((each) => triangle[each]);
  let spot = to;
  for (let round = 0; round < 20; round += 1) {
    for (const other of others) {
      const d = distance(spot, other);
      if (d > LARGEST) spot = { x: other.x + ((spot.x - other.x) * LARGEST) / d, y: other.y + ((spot.y - other.y) * LARGEST) / d };
    }
  }
  return { ...triangle, [corner]: spot };
}

/** Schroff et al. 2015: hard where the negative is no farther than the positive, easy where the margin is kept. */
export function kindOf(positive: number, negative: number, margin: number): Kind {
  if (negative <= positive) return 'hard';
  return loss(positive, negative, margin) > 0 ? 'semi-hard' : 'easy';
}

export const loss = (positive: number, negative: number, margin: number): number => Math.max(0, positive - negative + margin);
