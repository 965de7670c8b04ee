/** Bodies that come in chunks: their number, their pace, and the memory that they hold. */
import { setImmediate as iteration } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { BodyReads } from '../../src/body/body-reads.ts';
import { begin, MEBIBYTE, stateWith } from '../support/simulated-callers.ts';

test('a body in chunks of one byte holds little more memory than its size', async () => {
  const state = stateWith(64 * MEBIBYTE);
  const caller = begin(state, '', () => undefined);
  const one = new Uint8Array([0x20]).buffer;
  const before = process.memoryUsage();
  for (let n = 1; n <= 1_000_000; n++) {
    caller.receive(one, false);
    // More in one turn of the event loop, and the connection is cut.
    if (n % 2_048 === 0) await iteration();
  }
  const after = process.memoryUsage();
  expect(state.collected.totalSize).toBe(1_000_000);
  const held = after.heapUsed + after.external - before.heapUsed - before.external;
  // This includes garbage. Kept one by one, the chunks are 100 MB.
  expect(held).toBeLessThan(50 * MEBIBYTE);
  caller.abort();
  expect(state.collected.totalSize).toBe(0);
});

// The capacity counts the bytes that have come, so the free part of each piece must be small.
test('ten thousand bodies of which one byte has come hold a few megabytes', () => {
  const state = stateWith(64 * MEBIBYTE);
  const before = process.memoryUsage().arrayBuffers;
  const callers = Array.from({ length: 10_000 }, () => begin(state, '', () => undefined));
  for (const caller of callers) caller.receive(new Uint8Array([0x20]).buffer, false);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(5 * MEBIBYTE);
  for (const caller of callers) caller.abort();
  expect(state.collected.totalSize).toBe(0);
});

describe('chunks of bodies that come in parts', () => {
  const line = new Uint8Array(200).buffer;
  const tiny = new Uint8Array(32).buffer;
  /** By a clock that stands still. */
  const opener = (now = () => 0) => {
    const state = { ...stateWith(64 * MEBIBYTE), bodyReads: new BodyReads(now) };
    return () => begin(state, '', () => undefined);
  };
  const receive = (caller: ReturnType<typeof begin>, chunk: ArrayBuffer, count: number) => {
    for (let n = 0; n < count && !caller.isCut; n++) caller.receive(chunk, false);
  };

  test('of one connection keep the others waiting for one turn of the event loop', async () => {
    const open = opener();
    const first = open();
    const second = open();
    receive(first, line, 1);
    receive(second, line, 1);
    await iteration();
    receive(first, line, 4_000);
    expect(second.isPaused).toBe(false);
    receive(first, line, 2_000);
    expect([first.isPaused, second.isPaused]).toEqual([false, true]);
    // One that begins in this turn waits too.
    const third = open();
    receive(third, line, 1);
    expect(third.isPaused).toBe(true);
    await iteration();
    expect([second.isPaused, third.isPaused]).toEqual([false, false]);
  });

  // Its handle is memory of something else by then.
  test('do not touch a connection that has gone', async () => {
    const open = opener();
    const [first, gone] = [open(), open()];
    receive(first, line, 1);
    receive(gone, line, 1);
    await iteration();
    gone.abort();
    receive(first, line, 6_000);
    expect(gone.isPaused).toBe(false);
  });

  test('end the connection if they are more than a client can make, of any size', async () => {
    for (const chunk of [line, tiny, new Uint8Array(0).buffer]) {
      const caller = opener()();
      receive(caller, chunk, 21_000);
      expect(caller.isCut).toBe(false);
      receive(caller, chunk, 3_001);
      expect(caller.isCut).toBe(true);
      await iteration();
    }
  });

  test('leave a connection open if the kernel keeps less of it than is read at once', async () => {
    const bodyReads = new BodyReads(() => 0);
    const caller = begin({ ...stateWith(64 * MEBIBYTE), bodyReads }, '', () => undefined);
    bodyReads.trustReceiveBuffers();
    for (let turn = 0; turn < 20; turn++) {
      receive(caller, tiny, 15_000);
      await iteration();
    }
    expect(caller.isCut).toBe(false);
    // More than it holds of lines: tiny chunks, or a connection that came before the buffers were small.
    receive(caller, new Uint8Array(1).buffer, 30_000);
    expect(caller.isCut).toBe(true);
  });

  test('that came while the process could not read them are read', async () => {
    let nowMs = 0;
    const caller = opener(() => nowMs)();
    receive(caller, line, 1);
    await iteration();
    nowMs += 1_000;
    // Lines at 100,000 a second.
    receive(caller, line, 60_000);
    expect(caller.isCut).toBe(false);
  });

  test('that several connections bring at once share the limit of one connection', async () => {
    let nowMs = 0;
    const open = opener(() => nowMs);
    const callers = Array.from({ length: 5 }, open);
    for (const caller of callers) {
      receive(caller, line, 2_000);
      await iteration();
    }
    nowMs += 900;
    for (const caller of callers) {
      receive(caller, line, 1);
      await iteration();
    }
    const first = callers[0] as (typeof callers)[number];
    receive(first, line, 36_000);
    expect(first.isCut).toBe(false);
    receive(first, line, 10_000);
    expect(first.isCut).toBe(true);
  });
});
