// Points of the map as the page holds them: both axes by one factor, so that distances keep their shape.
export interface Points {
  x: Float32Array;
  y: Float32Array;
}

/** Into [-1, 1], centred, both axes scaled alike. */
export function fitted(x: Float32Array, y: Float32Array): Points {
  const range = (values: Float32Array) => {
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return [low, high] as const;
  };
  const [xl, xh] = range(x);
  const [yl, yh] = range(y);
  const half = Math.max(xh - xl, yh - yl, 1e-12) / 2 / 0.96;
  return { x: x.map((v) => (v - (xl + xh) / 2) / half), y: y.map((v) => (v - (yl + yh) / 2) / half) };
}

/** Even-odd rule; polygon as x0, y0, x1, y1, … */
export function inside(px: number, py: number, polygon: readonly number[]): boolean {
  let odd = false;
  for (let at = 0, before = polygon.length - 2; at < polygon.length; before = at, at += 2) {
    const ax = polygon[at] ?? 0;
    const ay = polygon[at + 1] ?? 0;
    const bx = polygon[before] ?? 0;
    const by = polygon[before + 1] ?? 0;
    if (ay > py !== by > py && px < ((bx - ax) * (py - ay)) / (by - ay) + ax) odd = !odd;
  }
  return odd;
}

export function lassoed(points: Points, polygon: readonly number[]): number[] {
  const found: number[] = [];
  for (let at = 0; at < points.x.length; at += 1) {
    if (inside(points.x[at] ?? 0, points.y[at] ?? 0, polygon)) found.push(at);
  }
  return found;
}

/** The point nearest to a place, within a distance; -1 where none is. */
export function nearest(points: Points, px: number, py: number, within: number): number {
  let best = -1;
  let least = within * within;
  for (let at = 0; at < points.x.length; at += 1) {
    const d = ((points.x[at] ?? 0) - px) ** 2 + ((points.y[at] ?? 0) - py) ** 2;
    if (d <= least) {
      least = d;
      best = at;
    }
  }
  return best;
}

export interface Window {
  left: number;
  right: number;
  bottom: number;
  top: number;
}

/** The points in a window, up to a number; null where there are more. */
export function within(points: Points, window: Window, most: number): number[] | null {
  const found: number[] = [];
  for (let at = 0; at < points.x.length; at += 1) {
    const x = points.x[at] ?? 0;
    const y = points.y[at] ?? 0;
    if (x >= window.left && x <= window.right && y >= window.bottom && y <= window.top) {
      if (found.length === most) return null;
      found.push(at);
    }
  }
  return found;
}
