import { expect, test } from 'vitest';
import { both, column, command, oneOf, quote } from './command';

test('words are quoted as Python quotes them', () => {
  expect(quote('shop.la')).toBe('shop.la');
  expect(quote("label = 'mug'")).toBe(`'label = '"'"'mug'"'"''`);
  expect(quote('')).toBe("''");
});
test('options that say nothing are left out and true ones stand alone', () => {
  expect(command('search', ['my shop.la'], { item: 3, k: 10, where: '', rerank: null, explain: true })).toBe(
    "lookalike search 'my shop.la' --item 3 -k 10 --explain",
  );
});
test('values of a column become a filter, with their quotes doubled', () => {
  expect(oneOf('label', ["o'neill", 'mug'])).toBe("label in ('o''neill', 'mug')");
  expect(oneOf('year', [2024])).toBe('year = 2024');
  expect(column('two words')).toBe('`two words`');
});
test('two filters are both wanted, whatever is in them', () => {
  expect(both('a = 1 or b = 2', 'c = 3')).toBe('(a = 1 or b = 2) and (c = 3)');
  expect(both('', 'c = 3')).toBe('c = 3');
});
