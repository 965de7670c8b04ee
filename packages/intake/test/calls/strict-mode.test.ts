import { expect, test } from 'vitest';
import { isStrictMode } from '../../src/calls/strict-mode.ts';

test('only the header values 1 and true, in any letter case, ask for strict mode', () => {
  for (const header of ['1', 'true', 'True', 'TRUE']) expect(isStrictMode(header)).toBe(true);
  for (const header of ['', '0', 'false', 'yes', '2']) expect(isStrictMode(header)).toBe(false);
});
