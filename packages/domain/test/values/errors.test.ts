import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERRORS, reasonOf } from '../../src/values/errors.ts';

test('docs/reference/errors.md lists every error code with its meaning, and no other', () => {
  const page = readFileSync(
    new URL('../../../../docs/reference/errors.md', import.meta.url),
    'utf8',
  );
  const listed = [...page.matchAll(/^\| `([A-Z_]+)` \| (.+) \|$/gm)].map(([, code, meaning]) => [
    code,
    meaning,
  ]);
  expect(Object.fromEntries(listed)).toEqual(ERRORS);
  expect(listed).toHaveLength(Object.keys(ERRORS).length);
});

test.each([
  [new Error('refused'), 'refused'],
  [new TypeError(), 'TypeError'],
  ['gone', 'gone'],
  // As Node ends a connection to `localhost`.
  [new AggregateError([new Error('refused ::1'), new Error('refused 127.0.0.1')]), /::1; .*0\.1$/],
  [new AggregateError([new Error('refused'), new Error('refused')]), 'refused'],
  [new AggregateError([new Error('one')], 'all failed'), 'all failed'],
  [new AggregateError([]), 'AggregateError'],
])('an error always has a reason: %o', (error, reason) => {
  expect(reasonOf(error)).toMatch(reason);
});
