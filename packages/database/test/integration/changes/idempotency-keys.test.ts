/** The rows of calls that may come again: whose a key is, which answer stays, and when the key is free. */
import { beforeEach, describe, expect, test } from 'vitest';
import {
  claimIdempotencyKey,
  clearIdempotencyKeys,
  keepIdempotentAnswer,
  releaseIdempotencyKey,
  type IdempotencyKey,
  type KeyClaim,
} from '../../../src/changes/idempotency-keys.ts';
import { transactOnce } from '../../../src/changes/transact-once.ts';
import type { Database } from '../../../src/connection/connection.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const NOW_MS = Date.parse('2026-03-01T00:00:00Z');
const LOCK_MS = 60_000;
const KEPT_MS = 7 * 86_400_000;
const BODY = Buffer.from('body');
const OTHER_BODY = Buffer.from('other body');
const FIRST = Buffer.from('the first answer');
const SECOND = Buffer.from('another answer');
const RUN_IT = { outcome: 'claimed', isDone: false } as const;

let database: Database;
let key: IdempotencyKey;

beforeEach(async () => {
  ({ database } = await createTestDatabase());
  key = { principal: 'token:1', keyHash: Buffer.from('hash') };
});

const claim = (fingerprint: Buffer, nowMs = NOW_MS, of = key): Promise<KeyClaim> =>
  claimIdempotencyKey(database, of, fingerprint, {
    nowMs,
    lockedUntilMs: nowMs + LOCK_MS,
    forgottenBeforeMs: nowMs - KEPT_MS,
  });

/** The change of the call is made; its answer is not. */
const makeChange = (change: string): Promise<string> =>
  transactOnce(
    database,
    { ...key, encrypt: (content) => content, decrypt: (content) => content },
    () => true,
    async () => change,
  );

describe('another body under a key in use', () => {
  const states: [string, () => Promise<unknown>, nowMs: number][] = [
    ['while the call runs', async () => {}, NOW_MS + 1],
    ['when its process has died', async () => {}, NOW_MS + LOCK_MS],
    ['when its change is made', () => makeChange('made'), NOW_MS + 1],
    ['when it is answered', () => keepIdempotentAnswer(database, key, FIRST), NOW_MS + LOCK_MS],
  ];
  test.each(states)('is refused %s, and the key stays with its call', async (_, reach, nowMs) => {
    await claim(BODY);
    await reach();
    expect(await claim(OTHER_BODY, nowMs)).toEqual({ outcome: 'mismatch' });
    // The call that holds the key goes on as if it had not been interrupted.
    expect(await claim(BODY, nowMs)).not.toEqual({ outcome: 'mismatch' });
  });

  test('is a new call once the key is forgotten, without the change of the old call', async () => {
    await claim(BODY);
    await makeChange('made');
    await keepIdempotentAnswer(database, key, FIRST);
    const laterMs = NOW_MS + KEPT_MS;
    expect(await claim(OTHER_BODY, laterMs)).toEqual({ outcome: 'mismatch' });
    expect(await claim(OTHER_BODY, laterMs + 1)).toEqual(RUN_IT);
    expect(await claim(OTHER_BODY, laterMs + 2)).toEqual({ outcome: 'running' });
    expect(await makeChange('made anew')).toBe('made anew');
  });
});

describe('the same body', () => {
  test('runs once at a time, and is taken over from the moment in which its lock ends', async () => {
    expect(await claim(BODY)).toEqual(RUN_IT);
    expect(await claim(BODY, NOW_MS + LOCK_MS - 1)).toEqual({ outcome: 'running' });
    expect(await claim(BODY, NOW_MS + LOCK_MS)).toEqual(RUN_IT);
    // The new run has a lock of its own.
    expect(await claim(BODY, NOW_MS + 2 * LOCK_MS - 1)).toEqual({ outcome: 'running' });
  });

  test('whose change is made is taken over at once, and its outcome stays', async () => {
    await claim(BODY);
    await makeChange('made');
    expect(await claim(BODY, NOW_MS + 1)).toEqual({ outcome: 'claimed', isDone: true });
    expect(await makeChange('made twice')).toBe('made');
  });

  test('that is answered gets the first answer for ever', async () => {
    await claim(BODY);
    expect(await keepIdempotentAnswer(database, key, FIRST)).toEqual(FIRST);
    // Of two that ran at the same time, the later one sends the first one's answer.
    expect(await keepIdempotentAnswer(database, key, SECOND)).toEqual(FIRST);
    expect(await claim(BODY, NOW_MS + LOCK_MS)).toEqual({ outcome: 'answered', answer: FIRST });
    expect(await claim(BODY, NOW_MS + KEPT_MS)).toEqual({ outcome: 'answered', answer: FIRST });
  });

  test('of another caller, or under another key, is another call', async () => {
    await claim(BODY);
    await keepIdempotentAnswer(database, key, FIRST);
    expect(await claim(BODY, NOW_MS, { ...key, principal: 'token:2' })).toEqual(RUN_IT);
    expect(await claim(BODY, NOW_MS, { ...key, keyHash: Buffer.from('else') })).toEqual(RUN_IT);
    await keepIdempotentAnswer(database, { ...key, principal: 'token:2' }, SECOND);
    expect(await claim(BODY, NOW_MS)).toEqual({ outcome: 'answered', answer: FIRST });
    // Two callers with one key, and two keys of one caller: each gets the answer to its own call.
    const beside = { ...key, principal: 'token:3' };
    const another = { ...key, keyHash: Buffer.from('another') };
    for (const each of [beside, another]) {
      expect(await claim(OTHER_BODY, NOW_MS, each)).toEqual(RUN_IT);
      expect(await claim(BODY, NOW_MS, each)).toEqual({ outcome: 'mismatch' });
      expect(await claim(OTHER_BODY, NOW_MS, each)).toEqual({ outcome: 'running' });
    }
    expect(await claim(OTHER_BODY, NOW_MS)).toEqual({ outcome: 'mismatch' });
    // The answer to one of them is not the other's.
    const ofOther = { ...another, principal: 'token:2' };
    await claim(OTHER_BODY, NOW_MS, ofOther);
    await keepIdempotentAnswer(database, another, SECOND);
    expect(await claim(OTHER_BODY, NOW_MS, another)).toEqual({
      outcome: 'answered',
      answer: SECOND,
    });
    for (const each of [beside, ofOther])
      expect(await claim(OTHER_BODY, NOW_MS, each)).toEqual({ outcome: 'running' });
    expect(await claim(BODY, NOW_MS, { ...key, keyHash: Buffer.from('else') })).toEqual({
      outcome: 'running',
    });
  });

  test('whose change is made keeps its outcome to the last moment before it is forgotten', async () => {
    await claim(BODY);
    await makeChange('made');
    expect(await claim(BODY, NOW_MS + KEPT_MS)).toEqual({ outcome: 'claimed', isDone: true });
  });

  test('waits if the other call gave its key back in that very moment, and the next try runs', async () => {
    await claim(BODY);
    const givesBack = database.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        await releaseIdempotencyKey(database, key);
        return result;
      },
    });
    expect(
      await claimIdempotencyKey(givesBack, key, BODY, {
        nowMs: NOW_MS,
        lockedUntilMs: NOW_MS + LOCK_MS,
        forgottenBeforeMs: NOW_MS - KEPT_MS,
      }),
    ).toEqual({ outcome: 'running' });
    expect(await claim(BODY)).toEqual(RUN_IT);
  });
});

test('a call whose key was removed meanwhile sends its own answer', async () => {
  expect(await keepIdempotentAnswer(database, key, FIRST)).toEqual(FIRST);
});

describe('a key is given back', () => {
  test('if the call had no effect, and is then free for another body too', async () => {
    await claim(BODY);
    const others = [
      { ...key, principal: 'token:2' },
      { ...key, keyHash: Buffer.from('else') },
    ];
    for (const other of others) await claim(BODY, NOW_MS, other);
    await releaseIdempotencyKey(database, key);
    expect(await claim(OTHER_BODY, NOW_MS + 1)).toEqual(RUN_IT);
    for (const other of others)
      expect(await claim(BODY, NOW_MS + 1, other)).toEqual({ outcome: 'running' });
  });

  test('but not once it is answered, also if the call made no change', async () => {
    await claim(BODY);
    await keepIdempotentAnswer(database, key, FIRST);
    await releaseIdempotencyKey(database, key);
    expect(await claim(BODY, NOW_MS + 1)).toEqual({ outcome: 'answered', answer: FIRST });
  });

  test('but not once its change is made or it is answered', async () => {
    await claim(BODY);
    await makeChange('made');
    await releaseIdempotencyKey(database, key);
    expect(await makeChange('made twice')).toBe('made');
    await keepIdempotentAnswer(database, key, FIRST);
    await releaseIdempotencyKey(database, key);
    expect(await claim(BODY, NOW_MS + 1)).toEqual({ outcome: 'answered', answer: FIRST });
  });
});

test('old keys are removed first, up to the given number at a time, and younger keys stay', async () => {
  const keyOf = (name: string) => ({ ...key, keyHash: Buffer.from(name) });
  for (const [index, name] of ['b', 'a', 'c', 'd'].entries())
    await claim(BODY, NOW_MS + index, keyOf(name));
  await clearIdempotencyKeys(database, NOW_MS + 3, 2);
  const isKept = async (name: string): Promise<boolean> =>
    (await claim(OTHER_BODY, NOW_MS + 4, keyOf(name))).outcome === 'mismatch';
  expect([await isKept('c'), await isKept('d')]).toEqual([true, true]);
  expect([await isKept('a'), await isKept('b')]).toEqual([false, false]);
  await clearIdempotencyKeys(database, NOW_MS + 3, 2);
  expect([await isKept('c'), await isKept('d')]).toEqual([false, true]);
});
