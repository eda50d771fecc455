import { expect, test } from 'vitest';
import { format, parse } from './place.svelte';

test('an address says the screen and its state, and reads back the same', () => {
  const params = { where: "label = 'mug' and x > 1", item: '3' };
  expect(parse(format('map', params))).toEqual({ screen: 'map', params });
});
test('an unknown screen is the search', () => expect(parse('#/nowhere?x=1').screen).toBe('search'));
