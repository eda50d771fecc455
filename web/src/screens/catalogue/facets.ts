// Ticked values by column, in the address and as a filter.
import { both, column, oneOf } from '../../lab/command';

export type Cell = string | number | boolean | null;
export type Choices = Record<string, Cell[]>;

export function readChoices(text: string): Choices {
  try {
    const found = JSON.parse(text || '{}') as Choices;
    return typeof found === 'object' && found !== null && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}

export function facetFilter(choices: Choices): string {
  return Object.entries(choices)
    .filter(([, values]) => values.length > 0)
    .map(([name, values]) => {
      const named = oneOf(name, values.filter((each) => each !== null));
      const missing = values.includes(null) ? `${column(name)} is null` : '';
      return named && missing ? `${named} or ${missing}` : named || missing;
    })
    .reduce(both, '');
}

export function ticked(choices: Choices, name: string, value: Cell, on: boolean): string | null {
  const before = (choices[name] ?? []).filter((each) => each !== value);
  const next = { ...choices, [name]: on ? [...before, value] : before };
  const kept = Object.fromEntries(Object.entries(next).filter(([, values]) => values.length > 0));
  return Object.keys(kept).length ? JSON.stringify(kept) : null;
}
