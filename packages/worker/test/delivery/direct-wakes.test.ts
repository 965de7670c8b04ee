/** Lanes that are drained by the process that has logged for them: each once more if something was logged meanwhile, none lost. */
import { beforeEach, expect, test } from 'vitest';
import type { LaneOutcome } from '../../src/delivery/deliver-webhook.ts';
import { DirectWakes } from '../../src/delivery/direct-wakes.ts';

const laneOf = (webhookId: number) => ({ environmentId: 1, webhookId });
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

let drains: { webhookId: number; end(outcome?: LaneOutcome['outcome']): void; fail(): void }[];
let failures: unknown[];
let wakes: DirectWakes;

beforeEach(() => {
  drains = [];
  failures = [];
  wakes = new DirectWakes({
    drain: ({ webhookId }) =>
      new Promise((resolve, reject) =>
        drains.push({
          webhookId,
          end: (outcome = 'idle') => resolve({ outcome } as LaneOutcome),
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
  // What was logged meanwhile may have come too late for the first.
  expect(drains).toHaveLength(2);
  drains[1]?.end();
  await settle();
  expect(drains).toHaveLength(2);
  expect(wakes.wake(laneOf(1))).toBe(true);
  expect(drains).toHaveLength(3);
});

test('one that has woken its lane through the queue is not drained once more here', async () => {
  wakes.wake(laneOf(1));
  wakes.wake(laneOf(1));
  drains[0]?.end('more');
  await settle();
  expect(drains).toHaveLength(1);
});

test('beyond so many, lanes are left to the queue until one has ended', async () => {
  expect([1, 2, 3].map((webhookId) => wakes.wake(laneOf(webhookId)))).toEqual([true, true, false]);
  drains[0]?.end();
  await settle();
  expect(wakes.wake(laneOf(3))).toBe(true);
});

test('a drain that fails is told, and the lane can be woken again', async () => {
  wakes.wake(laneOf(1));
  drains[0]?.fail();
  await settle();
  expect(failures).toHaveLength(1);
  expect(wakes.wake(laneOf(1))).toBe(true);
  expect(drains).toHaveLength(2);
});

test('a stop waits for what is under way', async () => {
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
