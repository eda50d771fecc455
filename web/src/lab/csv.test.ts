import { expect, test } from 'vitest';
import { csv } from './csv';

test('cells with commas, quotes and line breaks are quoted', () => {
  const item = { id: 3, path: 'a, "b".jpg', width: 1, height: 1, frames: 1, size: 1, content: null, thumb: '', columns: { label: 'mug', note: null } };
  expect(csv([item])).toBe('id,path,label,note\r\n3,"a, ""b"".jpg",mug,\r\n');
});
