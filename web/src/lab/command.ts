// Commands as a shell reads them, for what the server does not word itself (a chosen picture, a page's own state).
const SAFE = /^[A-Za-z0-9@%+=:,./_-]+$/;

/** The quoting of Python's shlex.quote. */
export function quote(word: string): string {
  if (word === '') return "''";
  return SAFE.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

type Option = string | number | boolean | null | undefined;

/** `command('search', ['shop.la'], {k: 10, where: "label = 'mug'"})`; null, undefined, false and '' are left out. */
export function command(verb: string, words: readonly string[], options: Record<string, Option> = {}): string {
  const parts = ['lookalike', ...verb.split(' '), ...words.map(quote)];
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false || value === '') continue;
    parts.push(name.length === 1 ? `-${name}` : `--${name.replaceAll('_', '-')}`);
    if (value !== true) parts.push(quote(String(value)));
  }
  return parts.join(' ');
}

/** A value in the filter language. */
export function literal(value: string | number | boolean): string {
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value);
}

/** A column in the filter language. */
export function column(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : '`' + name + '`';
}

/** `label in ('a', 'b')`, joined with what was there. */
export function oneOf(name: string, values: readonly (string | number | boolean)[]): string {
  if (values.length === 0) return '';
  const listed = values.map(literal);
  return listed.length === 1 ? `${column(name)} = ${listed[0]}` : `${column(name)} in (${listed.join(', ')})`;
}

export function both(a: string, b: string): string {
  if (!a || !b) return a || b;
  return `(${a}) and (${b})`;
}
