import { expect, test } from 'vitest';
import { bytes, fixed, interval, signed, size } from './number';

test('bytes are powers of a thousand', () => {
  expect(bytes(80_716_288)).toBe('80.7 MB');
  expect(bytes(2_048_000_000)).toBe('2.05 GB');
  expect(bytes(656)).toBe('656 B');
});
test('a budget is read as the command line reads it', () => {
  expect(size('16GB')).toBe(16_000_000_000);
  expect(size('1 GiB')).toBe(1_073_741_824);
  expect(size('many')).toBeNull();
});
test('a number that is not there is a dash, never a zero', () => {
  expect(fixed(null)).toBe('–');
  expect(fixed(NaN)).toBe('–');
  expect(interval([null, null])).toBe('');
  expect(signed(-0.0123)).toBe('−0.0123');
});
