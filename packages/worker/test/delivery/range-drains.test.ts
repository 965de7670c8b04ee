/**
 * Delivery queues of a woken range: bounded in number, shared out between workspaces and processes, and unharmed by
 * their neighbours.
 */
import type { FoundLane } from '@sluice/database/delivery/lanes';
import { LANES_A_RANGE, rangeOf, type LaneRange } from '@sluice/domain/wake-ups/lane-ranges';
import { beforeEach, expect, test, vi } from 'vitest';
import { RangeDrains, type RangeTurn } from '../../src/delivery/range-drains.ts';

const COUNT_MAX = 300;
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Call<Result> {
  readonly environmentId: number;
  end(result: Result, firstLastSequence?: number): void;
  fail(error: Error): void;
}

let claims: (Call<number> & { readonly range: LaneRange })[];
let drains: (Call<void> & { readonly webhookId: number; readonly turn: RangeTurn })[];
let givenBack: LaneRange[];
let failures: unknown[];
let ranges: RangeDrains;

/** The place of a range of a workspace from 0. */
const range = (environmentId: number, place = 0): LaneRange =>
  rangeOf({ environmentId, webhookId: place * LANES_A_RANGE });

const lanesIn = (
  { environmentId, firstWebhookId }: LaneRange,
  count: number,
  firstLastSequence: number,
) =>
  Array.from({ length: count }, (_, place) => ({
    // The first has a backlog.
    claimed: {
      environmentId,
      webhookId: firstWebhookId + place,
      cursor: 10,
      lastSequence: place === 0 ? firstLastSequence : 13,
    } as FoundLane,
    claimedAtMs: 1,
  }));

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  claims = [];
  drains = [];
  givenBack = [];
  failures = [];
  ranges = new RangeDrains({
    claim: (claimed) =>
      new Promise((resolve, reject) =>
        claims.push({
          range: claimed,
          environmentId: claimed.environmentId,
          end: (count, firstLastSequence = 1_000) =>
            resolve(lanesIn(claimed, count, firstLastSequence)),
          fail: reject,
        }),
      ),
    drain: ({ environmentId, webhookId }, _, turn) =>
      new Promise((resolve, reject) =>
        drains.push({
          environmentId,
          webhookId,
          turn,
          end: () => resolve(undefined),
          fail: reject,
        }),
      ),
    wakeAgain: async (returned) => void givenBack.push(returned),
    countMax: COUNT_MAX,
    timeSliceMs: 500,
    onFailure: (error) => failures.push(error),
  });
  return () => vi.useRealTimers();
});

/** Wakes a range of which so many queues are due, and lets the claim end. */
async function begin(woken: LaneRange, count: number, firstLastSequence?: number): Promise<void> {
  const begun = ranges.wake(woken);
  await settle();
  claims.at(-1)?.end(count, firstLastSequence);
  await begun;
}

test('a wake-up ends once its drains have begun, so that later deliveries of a neighbour are seen at once', async () => {
  await begin(range(1), 3);
  expect(drains.map(({ webhookId }) => webhookId)).toEqual([0, 1, 2]);
  // The same range again, while all three are in progress.
  const again = ranges.wake(range(1));
  await settle();
  expect(claims).toHaveLength(2);
  claims[1]?.end(0);
  await again;
});

test('several ranges are searched at a time, so that one slow search does not hold up the others', async () => {
  const small = new RangeDrains({
    claim: () => new Promise(() => claims.push({} as (typeof claims)[number])),
    drain: () => Promise.resolve(),
    wakeAgain: () => Promise.resolve(),
    countMax: 4 * LANES_A_RANGE,
    timeSliceMs: 500,
    onFailure: () => {},
  });
  for (const place of [0, 1, 2, 3]) void small.wake(range(1, place));
  await settle();
  expect(claims).toHaveLength(4);
});

test('a queue that fails is reported, and its neighbours are drained', async () => {
  await begin(range(1), 3);
  drains[1]?.fail(new Error('its key does not open'));
  await settle();
  expect(failures).toEqual([new Error('its key does not open')]);
  expect(ranges.count).toBe(2);
  drains[0]?.end();
  drains[2]?.end();
  await ranges.close();
  expect(ranges.count).toBe(0);
});

test('a search that fails leaves its places to others', async () => {
  const failing = ranges.wake(range(1));
  await settle();
  claims[0]?.fail(new Error('away'));
  await expect(failing).rejects.toThrow('away');
  expect(ranges.count).toBe(0);
  await begin(range(2), 1);
  expect(drains).toHaveLength(1);
});

test('without capacity no range is searched, and the place of each queue in progress is wanted', async () => {
  await begin(range(1), 200);
  expect(ranges.isPlaceWanted).toBe(false);
  await begin(range(1, 1), 100);
  const waiting = ranges.wake(range(1, 2));
  await settle();
  expect(claims).toHaveLength(2);
  expect(ranges.isPlaceWanted).toBe(true);
  drains[0]?.end();
  await settle();
  expect(claims).toHaveLength(3);
  claims[2]?.end(1);
  await waiting;
  expect(ranges.isPlaceWanted).toBe(false);
  expect(ranges.count).toBeLessThan(COUNT_MAX + LANES_A_RANGE);
});

test('a queue with a backlog gives its place back after a time slice, so that other processes share the range', async () => {
  await begin(range(1), 2);
  const [long, short] = drains;
  expect(long?.turn.timeSliceMs).toBe(500);
  // Else it would cost a job, a claim and a read more.
  expect(short?.turn.timeSliceMs).toBe(2_000);
  expect(long?.turn.isPlaceWanted()).toBe(true);
  // It ends by itself.
  expect(short?.turn.isPlaceWanted()).toBe(false);
  await begin(range(1, 1), 298);
  const waiting = ranges.wake(range(2));
  await settle();
  // It must, while others wait, if its log grows as fast as it is sent.
  expect(short?.turn.isPlaceWanted()).toBe(true);
  vi.advanceTimersByTime(500);
  await waiting;
});

test('a queue with as many deliveries as one round sends has no backlog', async () => {
  await begin(range(1), 1, 10 + 64);
  await begin(range(2), 1, 10 + 65);
  expect(drains.map(({ turn }) => turn.isPlaceWanted())).toEqual([false, true]);
});

test('a range that exceeded the capacity gives as many places back before the next is searched', async () => {
  await begin(range(1), 200);
  await begin(range(1, 1), 101);
  const waiting = ranges.wake(range(2));
  drains[0]?.end();
  await settle();
  expect(ranges.count).toBe(COUNT_MAX);
  expect(claims).toHaveLength(2);
  drains[1]?.end();
  await settle();
  expect(claims).toHaveLength(3);
  claims[2]?.end(0);
  await waiting;
});

test('the range of the workspace with the fewest queues in progress comes first', async () => {
  await begin(range(1), 200);
  await begin(range(2), 100);
  const woken = [range(3), range(1, 1), range(2, 1), range(2, 2)].map((each) => ranges.wake(each));
  await settle();
  drains[0]?.end();
  await settle();
  expect(claims.at(-1)?.environmentId).toBe(3);
  claims.at(-1)?.end(0);
  await settle();
  // Of one workspace, the range that waits longest.
  for (const place of [1, 2]) {
    expect(claims.at(-1)?.range).toEqual(range(2, place));
    claims.at(-1)?.end(0);
    await settle();
  }
  expect(claims.at(-1)?.environmentId).toBe(1);
  claims.at(-1)?.end(0);
  await Promise.all(woken);
  expect(givenBack).toEqual([]);
});

test('a range that finds no capacity for a time slice returns to the broker, for any process', async () => {
  await begin(range(1), 200);
  await begin(range(1, 1), 100);
  const waiting = ranges.wake(range(2));
  await settle();
  vi.advanceTimersByTime(500);
  await waiting;
  expect(givenBack).toEqual([range(2)]);
  expect(claims).toHaveLength(2);
  expect(ranges.isPlaceWanted).toBe(false);
});

test('a process without queues of ranges stops at once', async () => {
  await begin(range(1), 1);
  drains[0]?.end();
  await settle();
  await expect(ranges.close()).resolves.toBeUndefined();
});

test('a process that stops waits for its queues, and each gives its place back', async () => {
  await begin(range(1), 2);
  let isClosed = false;
  const closing = ranges.close().then(() => (isClosed = true));
  expect(ranges.isPlaceWanted).toBe(true);
  drains[0]?.end();
  await settle();
  expect(isClosed).toBe(false);
  drains[1]?.end();
  await closing;
});
