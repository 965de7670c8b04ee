/** Handles, tokens and cursors are taken only in their original form. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { readAccessToken, signAccessToken } from '../../src/auth/access-token.ts';
import { readStart, writePageToken } from '../../src/http/page.ts';
import { readPurchaseHandle, writePurchaseHandle } from '../../src/purchases/purchase-handle.ts';
import { readUsageCursor, writeUsageCursor } from '../../src/usage/usage-cursor.ts';

const SECRET = 'a secret of thirty-two characters or more';
const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const CLAIMS = { accountId: 1, credentialId: 2, secretTag: 'a', isReadOnly: true, scopes: [] };
const FILTERS = {
  environmentId: undefined,
  userId: undefined,
  start: '2026-01-01',
  end: '2026-02-01',
  order: 'desc',
} as never;
const CURSOR = { begunAtMs: NOW_MS } as never;

const isRead = (read: () => unknown): boolean => {
  try {
    return read() !== undefined;
  } catch {
    return false;
  }
};

/** Each with texts that differ in bits that base64 ignores, and its reader. */
const KINDS: readonly [string, readonly string[], (text: string) => boolean][] = [
  [
    'purchase handle',
    ['card', 'invoiced'].flatMap((rail) =>
      Array.from({ length: 30 }, (_, index) =>
        writePurchaseHandle(SECRET, {
          accountId: 1,
          rail: rail as 'card',
          runId: `run_${'x'.repeat(index)}`,
        }),
      ),
    ),
    (text) => readPurchaseHandle(SECRET, 1, text) !== undefined,
  ],
  [
    'access token',
    Array.from({ length: 30 }, (_, index) =>
      signAccessToken(SECRET, CLAIMS, NOW_MS + index * 1_000),
    ),
    (text) => readAccessToken(SECRET, text, NOW_MS) !== undefined,
  ],
  [
    'page token',
    Array.from({ length: 30 }, (_, index) => writePageToken(['ÿ'.repeat(index), index])),
    (text) => isRead(() => readStart(text, z.tuple([z.string(), z.int()]))),
  ],
];

/** The same bytes, or nearly, in another form. */
function* otherFormsOf(text: string): Generator<string> {
  yield `${text}=`;
  yield `${text}==`;
  yield `${text} `;
  yield ` ${text}`;
  yield `${text}\n`;
  yield `${text}!`;
  yield `${text}.`;
  yield `${text}.x`;
  const middle = Math.floor(text.length / 2);
  yield `${text.slice(0, middle)}\n${text.slice(middle)}`;
  yield `${text.slice(0, middle)}%${text.slice(middle)}`;
  if (/[-_]/.test(text.slice(4))) {
    const other = text.slice(4).replaceAll('-', '+').replaceAll('_', '/');
    yield text.slice(0, 4) + other;
  }
  // Bits beyond the last byte.
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = alphabet.indexOf(text.at(-1)!);
  for (const bits of [1, 2, 3]) yield text.slice(0, -1) + alphabet[last ^ bits]!;
}

test.each(KINDS)('a %s has one form', (_, texts, read) => {
  for (const text of texts) {
    expect({ text, isRead: read(text) }).toEqual({ text, isRead: true });
    for (const other of otherFormsOf(text))
      if (other !== text) expect({ other, isRead: read(other) }).toEqual({ other, isRead: false });
  }
});

test('a page token with other blanks in its JSON is refused', () => {
  const text = Buffer.from('["a", 7]').toString('base64url');
  expect(isRead(() => readStart(text, z.tuple([z.string(), z.int()])))).toBe(false);
});

test('a cursor of usage has one form', () => {
  const cursor = writeUsageCursor(SECRET, 1, FILTERS, CURSOR);
  const outcomeOf = (text: string) => readUsageCursor(SECRET, 1, FILTERS, text, NOW_MS).outcome;
  for (const other of otherFormsOf(cursor))
    expect([other, outcomeOf(other)]).toEqual([other, 'malformed']);
});
