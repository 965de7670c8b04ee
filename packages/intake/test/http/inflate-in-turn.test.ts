/** Places and turns of compressed bodies, beside a hostile sender. */
import { setImmediate as iteration } from 'node:timers/promises';
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { expect, test, vi } from 'vitest';
import { inflateInTurn } from '../../src/http/inflate-in-turn.ts';
import type { ServerState } from '../../src/http/server-state.ts';
import type { Body } from '../../src/calls/read-body.ts';
import { batch, begin, MEBIBYTE, stateWith } from '../support/simulated-callers.ts';

/** More than 4 KB, so it needs a place. */
const LARGE = gzipSync(Buffer.alloc(4 * MEBIBYTE - 2, 0x20), { level: 1 });
/** Less than 4 KB, and inflates to 4 MB. */
const SMALL_BOMB = gzipSync(Buffer.alloc(4 * MEBIBYTE - 2, 0x20), { level: 9 }).subarray(0, 4_096);
const SMALL = gzipSync('{"batch":[]}');

/** The bodies of a test, by name, in the order in which they were inflated. */
interface Taken {
  readonly name: string;
  readonly sizeBytes: number | undefined;
  readonly isInTurn: boolean;
}

const open = (
  state: ServerState,
  taken: Taken[],
): ((name: string, owner: number, bytes: Uint8Array, keepsPlace?: boolean) => () => void) => {
  const held = new Promise<void>(() => undefined);
  return (name, owner, bytes, keepsPlace = false) => {
    const release = inflateInTurn(state, owner, bytes, 'gzip', batch, (inflated, isInTurn) => {
      const sizeBytes = inflated instanceof Uint8Array ? inflated.length : undefined;
      taken.push({ name, sizeBytes, isInTurn });
      return keepsPlace ? held : undefined;
    });
    if (release === undefined) throw new Error('the body was refused');
    return release;
  };
};
const until = (taken: readonly Taken[], count: number) =>
  vi.waitFor(() => expect(taken).toHaveLength(count), 30_000);

test('a workspace that keeps four places leaves the fifth to a workspace without any', async () => {
  const state = stateWith(4 * MEBIBYTE);
  const taken: Taken[] = [];
  const inflate = open(state, taken);
  for (let n = 0; n < 6; n++) inflate('hostile', 1, LARGE, true);
  await until(taken, 4);
  for (let n = 0; n < 20; n++) await iteration();
  inflate('honest', 2, LARGE);
  await until(taken, 5);
  inflate('honest', 2, LARGE);
  await until(taken, 6);
  expect(taken.map(({ name }) => name)).toEqual([...Array(4).fill('hostile'), 'honest', 'honest']);
  expect(state.inflations.runningCount).toBe(4);
});

test('a small body is inflated in a turn although its workspace keeps all of its places', async () => {
  const state = stateWith(4 * MEBIBYTE);
  const taken: Taken[] = [];
  const inflate = open(state, taken);
  for (let n = 0; n < 6; n++) inflate('hostile', 1, LARGE, true);
  await until(taken, 4);
  inflate('honest', 1, SMALL);
  await until(taken, 5);
  expect(taken[4]).toEqual({ name: 'honest', sizeBytes: 12, isInTurn: true });
});

test('a small body of another workspace passes small bombs, which have their bytes released once', async () => {
  const state = stateWith(4 * MEBIBYTE);
  const taken: Taken[] = [];
  const inflate = open(state, taken);
  for (let n = 0; n < 4; n++) inflate('hostile', 1, LARGE, true);
  await until(taken, 4);
  const bombs = Array.from({ length: 400 }, () => inflate('bomb', 1, SMALL_BOMB));
  inflate('honest', 2, SMALL);
  let iterations = 0;
  for (; taken.length < 5; iterations++) await iteration();
  expect(iterations).toBeLessThanOrEqual(3);
  // Bombs wait for a turn or a place, and each is released once.
  const before = state.collected.totalSize;
  for (const release of bombs) release();
  expect(before - state.collected.totalSize).toBe(400 * SMALL_BOMB.length);
  expect(taken.filter(({ name }) => name === 'bomb')).toEqual([]);
});

test('a small body of each encoding, a broken one and one with bytes behind its end are read in a turn', async () => {
  const text = '{"batch":[]}';
  const results: unknown[] = [];
  const state = stateWith(MEBIBYTE);
  for (const [encoding, bytes] of [
    ['gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['deflate', deflateRawSync(text)],
    ['gzip', Buffer.from('not gzip')],
    ['gzip', Buffer.concat([gzipSync(text), Buffer.from('x')])],
  ] as const)
    inflateInTurn(state, 1, bytes, encoding, batch, (inflated, isInTurn) => {
      expect(isInTurn).toBe(true);
      results.push(inflated instanceof Uint8Array ? Buffer.from(inflated).toString() : inflated);
    });
  await vi.waitFor(() => expect(results).toHaveLength(5), 30_000);
  expect(results.slice(0, 3)).toEqual([text, text, text]);
  expect(results.slice(3)).toMatchObject([
    { outcome: 'invalid-encoding' },
    { outcome: 'invalid-encoding' },
  ]);
  await vi.waitFor(() => expect(state.collected.totalSize).toBe(0), 30_000);
});

/** As the event loop calls `onData`. */
const sendWhole = (state: ServerState, bytes: Buffer, taken: Body[]): void => {
  const caller = begin(state, 'gzip', (body) => taken.push(body));
  caller.receive(Uint8Array.from(bytes).buffer, true);
};

// The key of a web page is public: the long work may be a hostile sender's.
test('a tiny compressed call is read at once, though its workspace has long work', () => {
  const state = stateWith(MEBIBYTE);
  for (let n = 0; n < 5; n++) void state.turns.next(1);
  const taken: Body[] = [];
  sendWhole(state, SMALL, taken);
  expect(taken).toMatchObject([{ outcome: 'read', value: { batch: [] } }]);
  expect([state.heldCount, state.collected.totalSize]).toEqual([0, 0]);
});

test('tiny compressed calls of one iteration of the event loop have a bound, and all are read', async () => {
  const state = stateWith(MEBIBYTE);
  const taken: Body[] = [];
  for (let n = 0; n < 100; n++) sendWhole(state, SMALL, taken);
  expect(taken.length).toBeGreaterThanOrEqual(30);
  expect(taken.length).toBeLessThanOrEqual(34);
  await vi.waitFor(() => expect(taken).toHaveLength(100), 30_000);
});

test('a small compressed call of more than 8 KB waits for a turn', async () => {
  const state = stateWith(MEBIBYTE);
  const taken: Body[] = [];
  sendWhole(state, gzipSync(`{"batch":[]}${' '.repeat(8_192)}`), taken);
  expect(taken).toEqual([]);
  await vi.waitFor(() => expect(taken).toMatchObject([{ outcome: 'read' }]), 30_000);
});
