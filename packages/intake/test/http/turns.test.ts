import { setImmediate as iteration } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Turns } from '../../src/http/turns.ts';

test('one turn begins in each iteration of the event loop', async () => {
  const turns = new Turns(() => 0);
  const begun: number[] = [];
  for (let n = 0; n < 5; n++) void turns.next(1).then(() => begun.push(n));
  for (let count = 0; count <= 5; count++) {
    expect(begun.length).toBeLessThanOrEqual(count);
    await iteration();
  }
  await iteration();
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});

test('owners take turns, regardless of the number of their waiting tasks', async () => {
  const turns = new Turns(() => 0);
  const begun: string[] = [];
  const all: Promise<unknown>[] = [];
  const add = (owner: number, name: string) =>
    all.push(turns.next(owner).then(() => begun.push(name)));
  for (let n = 0; n < 100; n++) add(1, `a${n}`);
  for (let n = 0; n < 2; n++) add(2, `b${n}`);
  add(3, 'c0');
  await Promise.all(all);
  expect(begun.slice(0, 6)).toEqual(['a0', 'b0', 'c0', 'a1', 'b1', 'a2']);
  expect(begun).toHaveLength(103);
});

test('a turn is over after two milliseconds, by its own clock', async () => {
  let nowMs = 100;
  const turn = await new Turns(() => nowMs).next(1);
  expect(turn.isOver()).toBe(false);
  nowMs = 101.9;
  expect(turn.isOver()).toBe(false);
  nowMs = 102;
  expect(turn.isOver()).toBe(true);
});

test('short work shares a turn until its time is over', async () => {
  let nowMs = 0;
  const turns = new Turns(() => nowMs);
  const done: number[] = [];
  for (let n = 0; n < 6; n++)
    turns.share(1, () => {
      done.push(n);
      nowMs += 0.9;
    });
  await iteration();
  expect(done).toEqual([0, 1, 2]);
  await iteration();
  expect(done).toEqual([0, 1, 2, 3, 4, 5]);
});

test('a task behind a turn that is taken whole waits for the next turn', async () => {
  const turns = new Turns(() => 0);
  const done: string[] = [];
  turns.share(1, () => done.push('short'));
  void turns.next(1).then(() => done.push('whole'));
  turns.share(1, () => done.push('behind'));
  await iteration();
  expect(done).toEqual(['short', 'whole']);
  await iteration();
  expect(done).toEqual(['short', 'whole', 'behind']);
});

test('work at once has 16 KB together in an iteration of the event loop, and again in the next', async () => {
  const turns = new Turns(() => 0);
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 4; n++) expect(turns.mayWorkAtOnce(4_096)).toBe(true);
    expect(turns.mayWorkAtOnce(1)).toBe(false);
    await iteration();
  }
});

describe('while other calls come', () => {
  // Rests are by a timer, which a busy machine would end at any iteration.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  /** Milliseconds of the rest before the next turn begins. */
  async function restMsOf(turns: Turns): Promise<number> {
    let isBegun = false;
    void turns.next(1).then(() => (isBegun = true));
    for (let restMs = 0; restMs < 100; restMs++) {
      for (let count = 0; count < 3; count++) await iteration();
      if (isBegun) return restMs;
      vi.advanceTimersByTime(1);
    }
    throw new Error('no turn within 100 ms');
  }

  /** The rest after a turn of no time, beside calls. @param laterMs - after the last call. */
  async function restBeside(callCount: number, laterMs = 0): Promise<number> {
    let callsSoFar = 0;
    let nowMs = 0;
    const turns = new Turns(() => nowMs);
    turns.yieldTo(() => callsSoFar);
    await restMsOf(turns);
    callsSoFar += callCount;
    if (laterMs > 0) {
      await restMsOf(turns);
      nowMs += laterMs;
      await restMsOf(turns);
    }
    return restMsOf(turns);
  }

  test('a turn is followed by a rest; without them by the next one', async () => {
    expect(await restBeside(0)).toBe(0);
    expect(await restBeside(1)).toBe(4);
  });

  test('it is known for ten milliseconds, without a turn in between', () => {
    let callCount = 0;
    let nowMs = 0;
    const turns = new Turns(() => nowMs);
    turns.yieldTo(() => callCount);
    expect(turns.areCallsComing).toBe(false);
    callCount++;
    expect(turns.areCallsComing).toBe(true);
    nowMs = 9.9;
    expect(turns.areCallsComing).toBe(true);
    nowMs = 10;
    expect(turns.areCallsComing).toBe(false);
  });

  test('a small call that has its turn is known for ten milliseconds, and no turn rests for it', async () => {
    let nowMs = 0;
    const turns = new Turns(() => nowMs);
    turns.yieldTo(() => 0);
    await turns.next(1);
    turns.noteCallWithTurn();
    expect(turns.areCallsComing).toBe(true);
    let isBegun = false;
    void turns.next(1).then(() => (isBegun = true));
    await iteration();
    await iteration();
    expect(isBegun).toBe(true);
    nowMs = 9.9;
    expect(turns.areCallsComing).toBe(true);
    nowMs = 10;
    expect(turns.areCallsComing).toBe(false);
  });

  test('a turn that took longer, because its work cannot be divided, rests as long', async () => {
    let nowMs = 0;
    const turns = new Turns(() => nowMs);
    let callCount = 0;
    turns.yieldTo(() => callCount);
    const restAfter = async (tookMs: number): Promise<number> => {
      const turn = await turns.next(1);
      nowMs += tookMs;
      turn.isOver();
      callCount++;
      return restMsOf(turns);
    };
    expect(await restAfter(30)).toBe(30);
    nowMs += 1_000;
    expect(await restAfter(1)).toBe(3);
  });

  test('each of the turns until ten milliseconds after the last call is', async () => {
    expect(await restBeside(1, 9)).toBe(4);
    expect(await restBeside(1, 11)).toBe(0);
  });
});
