import { safeReturnPath } from '@sluice/domain/accounts/return-path';
import { expect, test } from 'vitest';

test.each([
  '/',
  '/?workspace=2',
  '/webhooks/2?tz=local&workspace=7',
  '/events/01M8-x_%2Fy%20z',
  '/people/ada%40example.com',
  '/deliveries?from=2026-11-25T17:37:10.959Z&to=2026-11-26T00:00:00.000Z',
  '/objects/1/a.b..c',
  '/signing',
])('a screen of ours is led back to: %s', (path) => {
  expect(safeReturnPath(path)).toBe(path);
});

// Security: an open redirect. A browser takes each of these for another address than it looks like, or for a page that a
// sign-in must not lead to.
test.each([
  '',
  'webhooks',
  'https://evil.test/',
  'javascript:alert(1)',
  '//evil.test/',
  '///evil.test/',
  '/\\evil.test/',
  '\\\\evil.test/',
  '/\t/evil.test/',
  '/\n/evil.test/',
  ' /webhooks',
  '/webhooks ',
  '/webhooks//evil.test',
  '/.//evil.test',
  '/./webhooks',
  '/..//evil.test',
  '/webhooks/../..//evil.test',
  '/%2e/evil',
  '/%2E%2e/evil',
  '/webhooks/.%2e/evil',
  '/webhooks/..',
  '/webhooks/..?tz=local',
  '/webhooks\u0000',
  '/webhooks\u2028',
  '/é',
  '/webhooks#//evil.test',
  '/webhooks<script>',
  '/sign-in/7?code=1&state=2',
  '/sign-in',
  '/portal/1/2',
  '/v1/customers',
  '/console/session',
  `/${'a'.repeat(2_000)}`,
])('any other text leads to the first screen: %j', (text) => {
  expect(safeReturnPath(text)).toBeNull();
});

test('every accepted path stays on the origin, with any characters', () => {
  const parts = [
    '/',
    '\\',
    '.',
    '..',
    '%2e',
    '%2f',
    '%5c',
    ':',
    '@',
    '?',
    '#',
    'evil.test',
    '\t',
    ' ',
    'a',
  ];
  let taken = 0;
  for (const one of parts)
    for (const two of parts)
      for (const three of parts)
        for (const four of parts) {
          const text = `/${one}${two}${three}${four}`;
          const path = safeReturnPath(text);
          if (path === null) continue;
          taken += 1;
          const url = new URL(path, 'https://console.example');
          expect(url.href).toBe(`https://console.example${path}`);
          expect(url.pathname).not.toContain('//');
        }
  expect(taken).toBeGreaterThan(100);
});
