// A triplet drawn by a seed: an anchor whose label another item shares, and an item of another label.
export function drawn(codes: Int32Array, seed: number, anchor = -1): [number, number, number] | null {
  const random = generator(seed);
  const rows = new Map<number, number[]>();
  codes.forEach((code, row) => {
    if (code < 0) return;
    const list = rows.get(code);
    if (list) list.push(row);
    else rows.set(code, [row]);
  });
  const shared = [...rows.values()].filter((list) => list.length > 1);
  if (!shared.length || rows.size < 2) return null;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const own = shared.find((list) => list.includes(anchor)) ?? pick(shared);
  const first = own.includes(anchor) ? anchor : pick(own);
  const positive = pick(own.filter((row) => row !== first));
  const others = [...rows.values()].filter((list) => list !== own);
  return [first, positive, pick(pick(others))];
}

/** mulberry32: enough for drawing examples. */
function generator(seed: number): () => number {
  let state = (seed + 1) * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
