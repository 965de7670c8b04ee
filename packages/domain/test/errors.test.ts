import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERRORS } from '../src/errors.ts';

test('docs/errors.md lists every error code with its meaning, and no other', () => {
  const page = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
  const listed = [...page.matchAll(/^\| `([A-Z_]+)` \| (.+) \|$/gm)].map(([, code, meaning]) => [
    code,
    meaning,
  ]);
  expect(Object.fromEntries(listed)).toEqual(ERRORS);
  expect(listed).toHaveLength(Object.keys(ERRORS).length);
});
