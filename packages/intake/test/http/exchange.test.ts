/** Memory that bodies may use before intake knows their workspace. */
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import type { ServerState } from '../../src/http/server-state.ts';
import type { Body } from '../../src/calls/read-body.ts';
import { batch, begin, MEBIBYTE, stateWith } from '../support/simulated-callers.ts';

/** A body of 4 KB that inflates to just under the limit of a batch. */
const BOMB = gzipSync(Buffer.alloc(batch.sizeBytesMax - 2, 0x20));

/** A caller that sends `body` in one piece; `taken` is called when its call is submitted. */
function send(state: ServerState, body: Uint8Array, taken: (body: Body) => void) {
  const caller = begin(state, 'gzip', taken);
  const { buffer } = new Uint8Array(body);
  caller.receive(buffer, true);
  // uWebSockets.js reads the next body into it.
  new Uint8Array(buffer).fill(0);
  return caller;
}

const randomGzip = (sizeBytes: number): Uint8Array => gzipSync(randomBytes(sizeBytes));

describe('bodies that come in parts', () => {
  const part = (sizeBytes: number) => new Uint8Array(sizeBytes).fill(0x20).buffer;

  test('are taken up to their limit, and are too large a byte beyond', async () => {
    const outcomeOf = async (sizeBytes: number): Promise<string | undefined> => {
      let outcome: string | undefined;
      const { receive } = begin(stateWith(batch.sizeBytesMax), '', (body) => ({ outcome } = body));
      receive(part(sizeBytes - 10), false);
      receive(part(10), true);
      await vi.waitFor(() => expect(outcome).toBeDefined(), 30_000);
      return outcome;
    };
    expect(await outcomeOf(batch.sizeBytesMax)).toBe('invalid-json');
    expect(await outcomeOf(batch.sizeBytesMax + 1)).toBe('too-large');
  });

  test('are held within the bound, and let go when their senders hang up', () => {
    const state = stateWith(2_000);
    const callers = [1_000, 1_000, 1].map((sizeBytes) => {
      const caller = begin(state, '', () => undefined);
      caller.receive(part(sizeBytes), false);
      return caller;
    });
    expect(callers.map(({ status }) => status?.slice(0, 3))).toEqual([undefined, undefined, '503']);
    expect(state.collected.totalSize).toBe(2_000);
    for (const caller of callers.slice(0, 2)) caller.abort();
    expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
  });
});

describe('large bodies', () => {
  const large = new Uint8Array(100_000).fill(0x20);

  test('are read one each iteration of the event loop, so that other calls are answered between two', async () => {
    const state = stateWith(4 * MEBIBYTE);
    let takenCount = 0;
    for (let n = 0; n < 10; n++)
      begin(state, '', () => takenCount++).receive(large.slice().buffer, true);
    expect(state.collected.totalSize).toBe(10 * large.length);
    const counts: number[] = [];
    while (takenCount < 10) {
      await new Promise((resolve) => setImmediate(resolve));
      counts.push(takenCount);
    }
    expect(counts.length).toBeGreaterThanOrEqual(10);
    await vi.waitFor(() => expect(state.collected.totalSize).toBe(0), 30_000);
  });

  test('of a workspace that sends many delay the bodies of another workspace by one turn', async () => {
    const state = stateWith(16 * MEBIBYTE);
    const taken: string[] = [];
    const send1 = (authorization: string) =>
      begin(state, '', () => taken.push(authorization), authorization).receive(
        large.slice().buffer,
        true,
      );
    for (let n = 0; n < 40; n++) send1('1');
    send1('2');
    await vi.waitFor(() => expect(taken).toHaveLength(41), 30_000);
    expect(taken.indexOf('2')).toBeLessThanOrEqual(2);
  });

  test.each(['', 'gzip'])('(%s) whose sender hangs up are dropped', async (encoding) => {
    const state = stateWith(4 * MEBIBYTE);
    const body = new Uint8Array(encoding === '' ? large : gzipSync(large));
    let isTaken = false;
    const caller = begin(state, encoding, () => (isTaken = true));
    caller.receive(body.buffer, true);
    caller.abort();
    await vi.waitFor(() => expect(state.collected.totalSize).toBe(0), 30_000);
    expect(state.inflations.runningCount).toBe(0);
    expect(isTaken).toBe(false);
    expect(state.inFlightCount).toBe(0);
  });
});

describe('compressed bodies', () => {
  test('that come at once are inflated a few at a time, in turn, and all are taken', async () => {
    const state = stateWith(4 * MEBIBYTE);
    const before = process.memoryUsage().arrayBuffers;
    let heldSizeBytes: number | undefined;
    const taken: number[] = [];
    const outcomes = new Set<string>();
    const callers = Array.from({ length: 60 }, (_, n) =>
      send(state, BOMB, ({ outcome }) => {
        outcomes.add(outcome);
        heldSizeBytes ??= process.memoryUsage().arrayBuffers - before;
        taken.push(n);
      }),
    );
    expect(state.collected.totalSize).toBe(60 * BOMB.length);
    await vi.waitFor(() => expect(taken).toHaveLength(60), 60_000);
    // Four bodies with the buffers of zlib, and ended bodies that are not collected yet. Not sixty.
    expect(heldSizeBytes).toBeLessThan(16 * batch.sizeBytesMax);
    // Inflated whole: it is white space.
    expect(outcomes).toEqual(new Set(['invalid-json']));
    // Four at a time: each body is taken at most three places away from its turn.
    for (const [place, n] of taken.entries()) expect(Math.abs(place - n)).toBeLessThan(4);
    expect(new Set(callers.map(({ status }) => status))).toEqual(new Set(['200 OK']));
    expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
  });

  test('do not count as calls that need no turn while they wait, and count once', async () => {
    const state = stateWith(10 * BOMB.length);
    state.turns.yieldTo(() => state.receivedCount - state.heldCount);
    let takenCount = 0;
    // A small body, a small one that goes on to a place, and a large one.
    const small = gzipSync(`{"batch":[]}${' '.repeat(8_192)}`);
    for (const body of [small, BOMB.subarray(0, 4_096), randomGzip(8_192)]) {
      state.receivedCount++;
      send(state, body, () => takenCount++);
      expect(state.turns.areCallsComing).toBe(false);
    }
    await vi.waitFor(() => expect(takenCount).toBe(3), 30_000);
    expect(state.heldCount).toBe(3);
    state.receivedCount++;
    expect(send(state, randomGzip(20 * BOMB.length), () => undefined).status).toMatch(/^503/);
    expect(state.heldCount).toBe(3);
    expect(state.turns.areCallsComing).toBe(true);
  });

  test('that are tiny count as calls that need no turn', () => {
    const state = stateWith(10 * BOMB.length);
    state.turns.yieldTo(() => state.receivedCount - state.heldCount);
    state.receivedCount++;
    send(state, gzipSync('{"batch":[]}'), () => undefined);
    expect(state.turns.areCallsComing).toBe(true);
  });

  test('that wait are counted, and refused with 503 beyond the bound', async () => {
    const state = stateWith(10 * BOMB.length);
    let takenCount = 0;
    const callers = Array.from({ length: 15 }, () => send(state, BOMB, () => takenCount++));
    expect(callers.filter(({ status }) => status?.startsWith('503'))).toHaveLength(5);
    await vi.waitFor(() => expect(takenCount).toBe(10), 60_000);
    expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
    const late = send(state, BOMB, () => takenCount++);
    await vi.waitFor(() => expect(late.status).toBe('200 OK'), 60_000);
  });

  test('whose senders hang up are released once: waiting ones immediately, ones under way at their end', async () => {
    const state = stateWith(4 * MEBIBYTE);
    const callers = Array.from({ length: 20 }, () => send(state, BOMB, () => undefined));
    for (const caller of callers) caller.abort();
    expect(state.inFlightCount).toBe(0);
    expect(state.collected.totalSize).toBeLessThanOrEqual(4 * BOMB.length);
    let isTaken = false;
    send(state, BOMB, () => (isTaken = true));
    await vi.waitFor(() => expect(isTaken).toBe(true), 60_000);
    await vi.waitFor(() => expect(state.collected.totalSize).toBe(0), 60_000);
    expect(state.inflations).toMatchObject({ runningCount: 0 });
  });

  test('that cannot be inflated, or not within the limit, give back their turn', async () => {
    const state = stateWith(4 * MEBIBYTE);
    let takenCount = 0;
    const tooLarge = gzipSync(Buffer.alloc(batch.sizeBytesMax + 1, 0x20));
    for (let n = 0; n < 20; n++) {
      send(state, n % 2 === 0 ? tooLarge : Buffer.from('not gzip'), () => takenCount++);
    }
    await vi.waitFor(() => expect(takenCount).toBe(20), 60_000);
    expect(state).toMatchObject({ collected: { totalSize: 0 }, inflations: { runningCount: 0 } });
  });
});
