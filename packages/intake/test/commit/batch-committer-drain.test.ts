/**
 * Steps of the drain, and the waits between them.
 *
 * The broker is asked and loaded as little as it can be.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CommitterWorld, flush, OWNERS, turn, WAIT } from '../support/committer-world.ts';

const REFUSED =
  'the broker did not accept the oldest flushes of the local disk buffer; intake retries, and error has the reason';

let world: CommitterWorld;
beforeEach(() => void (world = new CommitterWorld()));
afterEach(async () => {
  vi.useRealTimers();
  await world.close();
});

/** On the disk, in this order, while the broker is away. */
async function keep(ids: readonly string[]) {
  const committer = world.start();
  world.broker.mode = 'refusing';
  for (const id of ids) await committer.commit(flush(id), false, world.nowMs, OWNERS);
  world.broker.attempts = [];
  return committer;
}

/** These steps, counted from 1, wait until each may end. */
function holdSteps(...numbers: readonly number[]) {
  const held = numbers.map((number) => ({
    number,
    gate: Promise.withResolvers<void>(),
    begun: Promise.withResolvers<void>(),
  }));
  const put = world.broker.stage.put.bind(world.broker.stage);
  let steps = 0;
  vi.spyOn(world.broker.stage, 'put').mockImplementation(async (flushes) => {
    steps++;
    const step = held.find(({ number }) => number === steps);
    step?.begun.resolve();
    await step?.gate.promise;
    return put(flushes);
  });
  return held.map(({ gate, begun }) => ({ begun: begun.promise, end: gate.resolve }));
}

const holdStep = (number: number) => holdSteps(number)[0]!;

describe('the drain', () => {
  test('moves twice as many flushes at each step, 32 at most, after a single question', async () => {
    await keep(Array.from({ length: 100 }, (_, n) => `flush-${n}`));
    const asked = vi.spyOn(world.broker, 'durability');
    world.broker.mode = 'up';
    await world.untilEmpty();
    expect(world.broker.attempts.map((ids) => ids.split(',').length)).toEqual([
      1, 2, 4, 8, 16, 32, 32, 5,
    ]);
    expect(asked).toHaveBeenCalledTimes(1);
  });

  test('asks a broker that refuses again at growing intervals, which begin anew after a step', async () => {
    await keep(['a', 'b']);
    world.broker.poison = 'b';
    world.broker.onAdd = () => void (world.pauses.length = 0);
    world.broker.mode = 'up';
    await vi.waitFor(() => expect(world.pauses.length).toBeGreaterThan(6), WAIT);
    expect(world.broker.added).toEqual(['a']);
    expect(world.pauses.slice(0, 7)).toEqual([50, 100, 200, 400, 800, 1_000, 1_000]);
    world.broker.poison = undefined;
    await world.untilEmpty();
  });

  test('logs the first refusal after a step, and then one in a minute', async () => {
    const refusals = () => world.logged.filter((message) => message === REFUSED).length;
    await keep(['a', 'b']);
    world.broker.poison = 'a';
    world.broker.mode = 'up';
    await vi.waitFor(() => expect(world.broker.attempts.length).toBeGreaterThan(3), WAIT);
    expect(refusals()).toBe(1);
    world.nowMs += 60_000;
    await vi.waitFor(() => expect(refusals()).toBe(2), WAIT);
    world.broker.poison = 'b';
    await vi.waitFor(() => expect(refusals()).toBe(3), WAIT);
    expect(world.broker.added).toEqual(['a']);
    world.broker.poison = undefined;
    await world.untilEmpty();
  });

  test('gives up a step that hangs after 30 s, and tries it again', async () => {
    await keep(['a']);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const step = holdStep(1);
    world.broker.mode = 'up';
    await step.begun;
    vi.advanceTimersByTime(29_999);
    for (let turns = 0; turns < 10; turns++) await turn();
    expect(world.broker.attempts).toEqual([]);
    vi.advanceTimersByTime(1);
    for (let turns = 0; turns < 100 && !world.diskBuffer.isEmpty; turns++) await turn();
    const added = [...world.broker.added];
    step.end();
    expect(added).toEqual(['a']);
  });

  test('is not left by new flushes: they wait for the step under way, as long as it is short', async () => {
    const committer = await keep(['a', 'b', 'c']);
    const asked = vi.spyOn(world.broker, 'durability');
    const step = holdStep(2);
    world.broker.mode = 'up';
    await step.begun;
    const waiting = committer.commit(flush('d'), false, world.nowMs, OWNERS);
    for (let turns = 0; turns < 10; turns++) await turn();
    expect(world.diskBuffer.commitBatchCount).toBe(2);
    step.end();
    expect(await waiting).toBe('broker');
    expect(world.broker.added).toEqual(['a', 'b', 'c', 'd']);
    expect(asked).toHaveBeenCalledTimes(1);
  });

  test('is waited for by each new flush, also after one that a step let go to the disk', async () => {
    const committer = await keep(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
    const [second, third] = holdSteps(2, 3);
    world.broker.mode = 'up';
    await second!.begun;
    const first = committer.commit(flush('h'), false, world.nowMs, OWNERS);
    second!.end();
    expect(await first).toBe('spill');
    await third!.begun;
    const waiting = committer.commit(flush('i'), false, world.nowMs, OWNERS);
    for (let turns = 0; turns < 10; turns++) await turn();
    expect(world.diskBuffer.commitBatchCount).toBe(5);
    third!.end();
    await waiting;
    await world.untilEmpty();
    expect(world.broker.added).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']);
  });

  test('a flush that has waited long for a step goes behind it, to the disk', async () => {
    const committer = await keep(['a', 'b', 'c']);
    const step = holdStep(2);
    world.broker.mode = 'up';
    await step.begun;
    expect(await committer.commit(flush('d'), false, world.nowMs, OWNERS)).toBe('spill');
    expect(world.diskBuffer.commitBatchCount).toBe(3);
    step.end();
    await world.untilEmpty();
    expect(world.broker.added).toEqual(['a', 'b', 'c', 'd']);
  });

  test('ends at once at a stop if the broker refuses, and the flush stays', async () => {
    const committer = await keep(['a']);
    world.broker.poison = 'a';
    world.broker.mode = 'up';
    await vi.waitFor(() => expect(world.broker.attempts.length).toBeGreaterThan(1), WAIT);
    await committer.stop();
    expect(world.diskBuffer.commitBatchCount).toBe(1);
  });
});

test('Retry-After of a second outage counts from its own beginning', async () => {
  const committer = await keep(['a']);
  world.broker.mode = 'up';
  await world.untilEmpty();
  expect(world.logged.at(-1)).toBe('the local disk buffer is empty; calls go to the broker again');
  world.nowMs += 100_000;
  world.broker.mode = 'refusing';
  await committer.commit(flush('b'), false, world.nowMs, OWNERS);
  world.nowMs += 20_000;
  expect(committer.retryAfterSeconds()).toBe(10);
});

test('a flush waits a quarter of a second for the last staged flushes, and is staged behind them then', async () => {
  const committer = world.start();
  world.broker.heldBack = Array.from({ length: 100 }, () => 'ending');
  vi.spyOn(world.broker.stage, 'put').mockResolvedValueOnce();
  expect(await committer.commit(flush('a'), false, world.nowMs, OWNERS)).toBe('stage');
  expect(world.pauses).toEqual(Array.from({ length: 50 }, () => 5));
  // It was asked before the first wait and after each.
  expect(world.broker.heldBack).toHaveLength(49);
});

test('a flush on the disk is left out of reports only while the broker may have it', async () => {
  const committer = world.start();
  world.broker.isAtomicAcrossShards = false;
  let uncounted: number | undefined;
  const uncountedWhenKept: (number | undefined)[] = [];
  world.lease.leaveUncounted = (position?: number) => void (uncounted = position);
  world.lease.kept = () => void uncountedWhenKept.push(uncounted);
  const adding = committer.commit(flush('a'), true, world.nowMs, OWNERS);
  expect(uncounted).toBe(world.diskBuffer.readOldest(1, 1)[0]?.position);
  await adding;
  world.broker.mode = 'refusing';
  await committer.commit(flush('b'), true, world.nowMs, OWNERS);
  expect(uncountedWhenKept).toEqual([undefined]);
});
