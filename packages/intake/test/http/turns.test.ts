import { setImmediate as iteration } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
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
  /** Iterations of the event loop until the turns after the first one begin. @param laterMs - after the last call. */
  async function iterationsBetweenTurns(callsBetween: number, laterMs = 0): Promise<number> {
    let callCount = 0;
    let nowMs = 0;
    const turns = new Turns(() => nowMs);
    turns.yieldTo(() => callCount);
    await turns.next(1);
    callCount += callsBetween;
    if (laterMs > 0) {
      await turns.next(1);
      nowMs += laterMs;
      await turns.next(1);
    }
    let isBegun = false;
    void turns.next(1).then(() => (isBegun = true));
    let count = 0;
    while (!isBegun) {
      count++;
      await iteration();
    }
    return count;
  }

  test('a turn is followed by a rest; without them by the next one', async () => {
    expect(await iterationsBetweenTurns(0)).toBeLessThanOrEqual(2);
    expect(await iterationsBetweenTurns(1)).toBeGreaterThan(2);
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
    const rest = async (tookMs: number): Promise<number> => {
      const turn = await turns.next(1);
      nowMs += tookMs;
      turn.isOver();
      callCount++;
      const beganAtMs = performance.now();
      await turns.next(1);
      return performance.now() - beganAtMs;
    };
    // Timers of Node end up to a millisecond early.
    expect(await rest(30)).toBeGreaterThan(28);
    nowMs += 1_000;
    expect(await rest(1)).toBeLessThan(28);
  });

  test('each of the turns until ten milliseconds after the last call is', async () => {
    expect(await iterationsBetweenTurns(1, 9)).toBeGreaterThan(2);
    expect(await iterationsBetweenTurns(1, 11)).toBeLessThanOrEqual(2);
  });
});
