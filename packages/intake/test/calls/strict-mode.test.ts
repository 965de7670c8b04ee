import { expect, test } from 'vitest';
import { isStrictMode } from '../../src/calls/strict-mode.ts';

test('strict mode is asked for by whatever is true elsewhere', () => {
  for (const header of ['1', 'true', 'True', 'TRUE']) expect(isStrictMode(header)).toBe(true);
  for (const header of ['', '0', 'false', 'yes', '2']) expect(isStrictMode(header)).toBe(false);
});
