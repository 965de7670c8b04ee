import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  ACCESS_TOKEN_LIFETIME_MS,
  looksLikeAccessToken,
  readAccessToken,
  signAccessToken,
} from '../../src/auth/access-token.ts';

const SECRET = 'a secret of thirty-two characters or more';
const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const claims = {
  accountId: 1,
  credentialId: 2,
  secretTag: 'a tag',
  isReadOnly: true,
  scopes: ['usage:write'],
};
const token = signAccessToken(SECRET, claims, NOW_MS);
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

test('a token returns its signed claims for fifteen minutes', () => {
  expect(looksLikeAccessToken(token)).toBe(true);
  const lastMs = NOW_MS + ACCESS_TOKEN_LIFETIME_MS - 1;
  expect(readAccessToken(SECRET, token, lastMs)).toEqual({
    ...claims,
    expiresAtMs: NOW_MS + ACCESS_TOKEN_LIFETIME_MS,
  });
  expect(readAccessToken(SECRET, token, lastMs + 1)).toBeUndefined();
});

test('an access token lives no longer for a clock that was set back, and no longer for one ahead', () => {
  expect(readAccessToken(SECRET, token, NOW_MS - 59_000)).toBeDefined();
  for (const nowMs of [NOW_MS - 61_000, NOW_MS - 3_600_000, NOW_MS + 3_600_000])
    expect(readAccessToken(SECRET, token, nowMs)).toBeUndefined();
});

// Security: a token that we did not sign is refused.
test.each([
  ['another secret', signAccessToken(`${SECRET}.`, claims, NOW_MS)],
  [
    'other claims under the same signature',
    token.replace(/\.[^.]+\./, `.${encode({ account_id: 2 })}.`),
  ],
  ['no signature', token.replace(/[^.]+$/, '')],
  ['half a signature', token.slice(0, -10)],
  ['the algorithm none', `${encode({ alg: 'none', typ: 'JWT' })}.${token.split('.')[1]}.`],
  ['a fourth part', `${token}.a`],
  ['one part', token.split('.')[0] as string],
  [
    'a signature under the secret itself',
    ((signed) => `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`)(
      token.split('.').slice(0, 2).join('.'),
    ),
  ],
])('refused: %s', (_name, forged) => {
  expect(readAccessToken(SECRET, forged, NOW_MS)).toBeUndefined();
});
