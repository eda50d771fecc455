// Which rows of a long grid are on screen: a bounded number whatever the length.
export interface View {
  first: number;
  last: number;
  above: number;
  height: number;
  columns: number;
}

export function view(count: number, width: number, least: number, row: number, scroll: number, shown: number, spare = 3): View {
  const columns = Math.max(1, Math.floor(width / least));
  const rows = Math.ceil(count / columns);
  const top = Math.max(0, Math.min(rows, Math.floor(scroll / row) - spare));
  const bottom = Math.min(rows, Math.ceil((scroll + shown) / row) + spare);
  return { first: top * columns, last: Math.min(count, bottom * columns), above: top * row, height: rows * row, columns };
}
