import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { openExportLink, writeExportLink } from '../../src/audit/export-link.ts';

const SECRET = 'a secret of thirty-two characters';
const NOW_MS = 1_760_000_000_000;
const LIFETIME_MS = 300_000;
const key = { accountId: 7, exportId: 'an-export' };
const holder = { actor: { type: 'user', userId: 3 }, sessionId: 12 } as const;
const link = writeExportLink(SECRET, key, holder, NOW_MS + LIFETIME_MS);
const outcomeAt = (nowMs: number) => openExportLink(SECRET, link, nowMs, LIFETIME_MS).outcome;

test('a link opens its export until it expires', () => {
  expect(openExportLink(SECRET, link, NOW_MS, LIFETIME_MS)).toEqual({
    outcome: 'opened',
    ...key,
    holder,
  });
  expect(outcomeAt(NOW_MS + LIFETIME_MS - 1)).toBe('opened');
  expect(outcomeAt(NOW_MS + LIFETIME_MS)).toBe('expired');
});

test.each([
  { actor: { type: 'user', userId: 2_147_483_647 }, sessionId: 2_147_483_647 },
  { actor: { type: 'service_account', serviceAccountId: 3 }, sessionId: 4 },
  { actor: { type: 'service_account', serviceAccountId: 3 }, sessionId: null },
  { actor: { type: 'service_account', serviceAccountId: null }, sessionId: null },
] as const)('a link names its holder: %j', (each) => {
  const own = writeExportLink(SECRET, key, each, NOW_MS + LIFETIME_MS);
  expect(openExportLink(SECRET, own, NOW_MS, LIFETIME_MS)).toMatchObject({ holder: each });
});

test('a link lives no longer for a clock that was set back or ahead by an hour', () => {
  expect(outcomeAt(NOW_MS - 59_000)).toBe('opened');
  expect(outcomeAt(NOW_MS - 3_600_000)).toBe('expired');
  expect(outcomeAt(NOW_MS + 3_600_000)).toBe('expired');
});

test.each([
  ['u3', { actor: { type: 'user', userId: 3 }, sessionId: null }],
  ['', { actor: { type: 'service_account', serviceAccountId: null }, sessionId: null }],
] as const)('a link of an older version, %j without a session, opens its export', (held, own) => {
  const text = ['7', 'an-export', ...(held ? [held] : []), (NOW_MS + LIFETIME_MS) / 1000].join('.');
  const signature = createHmac('sha256', SECRET).update(`audit-log-export:${text}`);
  const older = `${text}.${signature.digest('base64url')}`;
  expect(openExportLink(SECRET, older, NOW_MS, LIFETIME_MS)).toEqual({
    outcome: 'opened',
    ...key,
    holder: own,
  });
});
