/** Batches past their limit, whose calls are counted without holding them. */
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Turns } from '../../src/http/turns.ts';
import type { Body } from '../../src/calls/read-body.ts';
import { capacityOfOne } from '../support/capacity-of-one.ts';
import { batch, begin, MEBIBYTE, stateWith } from '../support/simulated-callers.ts';

describe('batches that are too large', () => {
  const MANY = 8;
  const chunk = () => new Uint8Array(MEBIBYTE / 2).fill(0x20).buffer;
  const chunkCountMax = Math.ceil(batch.sizeBytesMax / chunk().byteLength);

  /** Turns end after some looks at the clock, however fast the machine is. */
  const stateWithShortTurns = () => {
    let nowMs = 0;
    return { ...stateWith(64 * MEBIBYTE), turns: new Turns(() => nowMs++) };
  };

  test('are counted in turns, so many of one workspace delay another workspace by one turn', async () => {
    const state = stateWithShortTurns();
    const ended: string[] = [];
    for (let n = 0; n < MANY; n++) {
      const { receive } = begin(state, '', () => ended.push('too large'));
      for (let index = 0; index <= chunkCountMax; index++)
        receive(chunk(), index === chunkCountMax);
    }
    void state.turns.next(2).then(() => ended.push('other'));
    await vi.waitFor(() => expect(ended).toHaveLength(MANY + 1), 30_000);
    expect(ended[0]).toBe('other');
    expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
  });

  test('are read no faster than they are counted, and their calls are counted to the end', async () => {
    const state = stateWithShortTurns();
    let counted: Body | undefined;
    const caller = begin(state, '', (body) => (counted = body));
    const item = Buffer.from('{"a":[{}]},'.padEnd(1_024, ' '));
    caller.receive(new Uint8Array(Buffer.from('{"batch":[')).buffer, false);
    const items = new Uint8Array(Buffer.concat(Array<Buffer>(1_024).fill(item)));
    let itemCount = 0;
    let pauseCount = 0;
    for (; itemCount * item.length < batch.sizeBytesMax + 4 * MEBIBYTE; itemCount += 1_024) {
      caller.receive(items.slice().buffer, false);
      if (!caller.isPaused) continue;
      pauseCount++;
      await vi.waitFor(() => expect(caller.isPaused).toBe(false), 30_000);
    }
    expect(pauseCount).toBeGreaterThanOrEqual(4);
    // As much as is counted is not held.
    expect(state.collected.totalSize).toBe(0);
    caller.receive(new Uint8Array(Buffer.from('{}]}')).buffer, true);
    await vi.waitFor(() => expect(counted).toBeDefined(), 30_000);
    expect(counted).toEqual({ outcome: 'too-large', callCount: itemCount + 1 });
  });

  test('are released when their senders hang up, and are not counted if capacity runs out', async () => {
    for (const end of ['abort', 'fill'] as const) {
      const state = {
        ...stateWithShortTurns(),
        collected: capacityOfOne(batch.sizeBytesMax + MEBIBYTE),
      };
      let taken: Body | undefined;
      const caller = begin(state, '', (body) => (taken = body));
      for (let index = 0; index <= chunkCountMax; index++) caller.receive(chunk(), false);
      for (let turn = 0; turn < 3; turn++) await new Promise((next) => setImmediate(next));
      if (end === 'abort') caller.abort();
      else
        for (let index = 1; index <= 2 * chunkCountMax; index++)
          caller.receive(chunk(), index === 2 * chunkCountMax);
      expect(state.collected.totalSize).toBeLessThanOrEqual(chunk().byteLength);
      for (let turn = 0; turn < 50; turn++) await new Promise((next) => setImmediate(next));
      expect(taken).toEqual(end === 'abort' ? undefined : { outcome: 'too-large' });
      expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
    }
  });
});

test('a compressed batch that is too large is counted no further once its sender has hung up', async () => {
  const state = stateWith(64 * MEBIBYTE);
  const next = state.turns.next.bind(state.turns);
  // The sender hangs up at the first of 32 turns.
  const asked = vi.spyOn(state.turns, 'next').mockImplementation((owner) => {
    caller.abort();
    return next(owner);
  });
  const bytes = gzipSync(Buffer.alloc(16 * MEBIBYTE, ' '));
  const caller = begin(state, 'gzip', () => undefined);
  caller.receive(new Uint8Array(bytes).buffer, true);
  await vi.waitFor(() => expect(asked).toHaveBeenCalled(), 30_000);
  await vi.waitFor(() => expect(state.inflations.runningCount).toBe(0), 30_000);
  expect(asked).toHaveBeenCalledTimes(1);
  expect(state).toMatchObject({ collected: { totalSize: 0 }, inFlightCount: 0 });
});

test('a sender has its whole time again once the chunks of its too large batch are counted', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const state = stateWith(2 * batch.sizeBytesMax);
  const caller = begin(state, '', () => undefined, '1', 1);
  caller.receive(new Uint8Array(batch.sizeBytesMax + 1).fill(0x20).buffer, false);
  expect(caller.isPaused).toBe(true);
  vi.advanceTimersByTime(2_900);
  while (caller.isPaused) await new Promise((next) => setImmediate(next));
  vi.advanceTimersByTime(2_900);
  expect(state.inFlightCount).toBe(1);
  vi.advanceTimersByTime(200);
  expect(state.inFlightCount).toBe(0);
});
