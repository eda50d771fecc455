import { expect, test } from 'vitest';
import { fromParams, pictureCommand, terms, toParams, typed } from './query';

const OPTIONS = { k: 10, where: '', rerank: '', pool: 100, encoder: '', expand: false };

test('a number is an item, with or without its sign; anything else is a text', () => {
  expect(typed(' #4711 ')).toMatchObject({ kind: 'item', item: 4711 });
  expect(typed('4711 shoes')).toMatchObject({ kind: 'text', text: '4711 shoes' });
});
test('pictures are numbered in the order they are sent, with their weights', () => {
  const picture = new Blob(['x']);
  const made = terms([typed('7'), { kind: 'picture', picture, name: 'a.jpg', weight: -0.5 }]);
  expect(made.pictures).toEqual([picture]);
  expect(made.terms.map((each) => [each.item, each.picture, each.weight])).toEqual([[7, null, 1], [null, 0, -0.5]]);
});
test('the address keeps texts and items with their weights', () => {
  const parts = [{ ...typed('7'), weight: -0.5 }, typed('red trainers')];
  expect(fromParams(toParams(parts).q ?? '', '')).toEqual(parts);
  expect(fromParams('not json', '')).toEqual([]);
  expect(fromParams('', '12')).toEqual([typed('12')]);
});
test('a text that looks like a number stays a text when it comes back', () => {
  const part = { ...typed('shoe'), text: '42', name: '42' };
  expect(fromParams(toParams([part]).q ?? '', '')[0]).toMatchObject({ kind: 'text', text: '42' });
});
test('a picture with a text taken away is one command', () => {
  const parts = [{ kind: 'picture' as const, picture: new Blob(), name: 'my shoe.jpg', weight: 1 }, { ...typed('leather'), weight: -0.5 }];
  expect(pictureCommand('shop.la', parts, { ...OPTIONS, rerank: 'k-reciprocal' })).toBe(
    "lookalike search shop.la 'my shoe.jpg' -k 10 --rerank k-reciprocal --pool 100 --minus '0.5*leather'",
  );
});
