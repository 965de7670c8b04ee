/**
 * Lanes that are drained by the process that has logged for them. A lane with later deliveries is drained once more,
 * and no delivery is lost.
 */
import { beforeEach, expect, test } from 'vitest';
import { DirectWakes } from '../../src/delivery/direct-wakes.ts';
import type { TakenLane } from '../../src/lane/lane-drain-deps.ts';

const laneOf = (webhookId: number) => ({ environmentId: 1, webhookId });
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

const TAKEN = { claimed: {} as TakenLane['claimed'], claimedAtMs: 1 };

let drains: {
  readonly webhookId: number;
  readonly taken: TakenLane | undefined;
  end(): void;
  fail(): void;
}[];
let failures: unknown[];
let wakes: DirectWakes;

beforeEach(() => {
  drains = [];
  failures = [];
  wakes = new DirectWakes({
    drain: ({ webhookId }, taken) =>
      new Promise((resolve, reject) =>
        drains.push({
          webhookId,
          taken,
          end: () => resolve(undefined),
          fail: () => reject(new Error('away')),
        }),
      ),
    countMax: 2,
    onFailure: (error) => failures.push(error),
  });
});

test('a lane is drained at once, and by one drain at a time', async () => {
  expect(wakes.wake(laneOf(1))).toBe(true);
  expect(wakes.wake(laneOf(1))).toBe(true);
  expect(drains).toHaveLength(1);
  drains[0]?.end();
  await settle();
  // Deliveries logged meanwhile may have come too late for the first.
  expect(drains).toHaveLength(2);
  drains[1]?.end();
  await settle();
  expect(drains).toHaveLength(2);
  expect(wakes.wake(laneOf(1))).toBe(true);
  expect(drains).toHaveLength(3);
});

test('a drain that gives its lane back with more to do is followed by another, but for the stop of the process', async () => {
  wakes.wake(laneOf(1));
  expect(wakes.wakeAgain(laneOf(1))).toBe(true);
  drains[0]?.end();
  await settle();
  expect(drains).toHaveLength(2);
  const closing = wakes.close();
  expect(wakes.wakeAgain(laneOf(1))).toBe(false);
  drains[1]?.end();
  await closing;
  expect(drains).toHaveLength(2);
});

test('a lane that was taken with its log is drained at once under that lease, and once more where it is woken meanwhile', async () => {
  wakes.wake(laneOf(1));
  wakes.drainTaken(laneOf(1), TAKEN);
  wakes.drainTaken(laneOf(2), TAKEN);
  expect(drains.map(({ taken }) => taken)).toEqual([undefined, TAKEN, TAKEN]);
  expect(wakes.roomCount).toBe(0);
  expect(wakes.wake(laneOf(2))).toBe(true);
  for (const drain of [...drains]) drain.end();
  await settle();
  expect(drains.slice(3).map(({ webhookId, taken }) => [webhookId, taken])).toEqual([
    [2, undefined],
  ]);
});

test('beyond so many, lanes are left to the queue until one has ended', async () => {
  expect([1, 2, 3].map((webhookId) => wakes.wake(laneOf(webhookId)))).toEqual([true, true, false]);
  drains[0]?.end();
  await settle();
  expect(wakes.wake(laneOf(3))).toBe(true);
});

test('a drain that fails is reported, and the lane can be woken again', async () => {
  wakes.wake(laneOf(1));
  drains[0]?.fail();
  await settle();
  expect(failures).toHaveLength(1);
  expect(wakes.wake(laneOf(1))).toBe(true);
  expect(drains).toHaveLength(2);
});

test('a stop waits for the drains that are under way', async () => {
  wakes.wake(laneOf(1));
  wakes.wake(laneOf(2));
  let isClosed = false;
  void wakes.close().then(() => (isClosed = true));
  drains[0]?.end();
  await settle();
  expect(isClosed).toBe(false);
  drains[1]?.end();
  await settle();
  expect(isClosed).toBe(true);
});
