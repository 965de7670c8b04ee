/** A worker whose clock jumps while it runs. Deliveries that it would give up by that clock must stay. */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  createLaneWorld,
  DAY_MS,
  endLeases,
  HOUR_MS,
  OK,
  status,
  type LaneWorld,
} from '../support/lane-world.ts';
import { createDelivered, start } from '../support/replay-world.ts';

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

/** Progress that cannot be stored is tried again until the lease ends, and a machine may stand still before an attempt. */
const SHORT = { leases: { timeoutMs: 20, leaseMs: 8_000, timeSliceMs: 7_000 } };

/** Moves its clock alone: Postgres' is unchanged. */
function jump(world: LaneWorld, byMs: number): void {
  world.nowMs += byMs;
  world.clock = { ...world.clock, aheadMs: world.clock.aheadMs + byMs };
}

const WRONG = expect.objectContaining({ code: 'CLOCK_WRONG' });

describe('a clock that jumps past the days of a failing delivery gives it up', () => {
  test('not in its lane: the worker ends, and the delivery waits', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    world.behave = () => status(503);
    expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
    jump(world, 8 * DAY_MS);
    await expect(world.deliver()).rejects.toEqual(WRONG);
    expect(world.endings).toEqual([WRONG]);
    expect(await world.lane()).toMatchObject({ state: 'failing', cursor: 0 });
    expect((await world.attempts(1)).map(({ outcome }) => outcome)).toEqual(['retrying']);
  });

  test('not in a replay', async () => {
    const world = await createDelivered(database, 1);
    const { find } = await start(world);
    world.behave = () => status(503);
    expect(await world.replay()).toBe(true);
    jump(world, 8 * DAY_MS);
    await expect(world.replay()).rejects.toEqual(WRONG);
    expect(world.endings).toEqual([WRONG]);
    expect(await find()).toMatchObject({ state: 'running', abandoned: 0, isFailing: true });
  });

  test('not though it is set right before that is written down', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    world.behave = () => status(503);
    await world.deliver();
    jump(world, 8 * DAY_MS);
    world.behave = () => {
      // The attempt has begun; its end is recorded by the moved clock.
      queueMicrotask(() => jump(world, -8 * DAY_MS));
      return status(503);
    };
    await expect(world.deliver()).rejects.toEqual(WRONG);
    expect(await world.lane()).toMatchObject({ state: 'failing', cursor: 0 });
  });

  test('not while Postgres answers too late with its time', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    world.behave = () => status(503);
    await world.deliver();
    world.nowMs += 8 * DAY_MS;
    world.clock = { aheadMs: 0, uncertaintyMs: 3 * 60_000 };
    await expect(world.deliver(SHORT)).rejects.toThrow('did not return its time soon enough');
    expect(world.endings).toEqual([]);
    expect(await world.lane()).toMatchObject({ state: 'failing', cursor: 0 });
  });
});

describe('after an attempt by a clock that jumped back by days, a right clock does not give the delivery up', () => {
  test('in a lane: it is not kept, and the worker ends', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    world.behave = () => status(503);
    jump(world, -8 * DAY_MS);
    await expect(world.deliver()).rejects.toEqual(WRONG);
    expect(world.endings).toEqual([WRONG]);
    jump(world, 8 * DAY_MS);
    await expectTwoTries(world);
  });

  test('though it is set right before that is written down, when no worker need end', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    jump(world, -8 * DAY_MS);
    world.behave = () => {
      if (world.sent.length === 1) queueMicrotask(() => jump(world, 8 * DAY_MS));
      return status(503);
    };
    await expect(world.deliver()).rejects.toThrow('not stored, and is made again');
    expect(world.endings).toEqual([]);
    await expectTwoTries(world);
  });

  async function expectTwoTries(world: LaneWorld): Promise<void> {
    // Once the lease of the first has ended.
    await endLeases(world);
    expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
    world.nowMs += HOUR_MS;
    expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
    const outcomes = (await world.attempts(1)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['retrying', 'retrying']);
  }
});

test('a clock that only seemed wrong once, or is behind, ends no worker that gives up', async () => {
  const world = await createLaneWorld(database);
  await world.log(2);
  world.behave = (_, eventId) => (eventId === 'e1' ? status(503) : OK);
  await world.deliver();
  world.nowMs += 8 * DAY_MS;
  let asked = 0;
  Object.defineProperty(world, 'clock', {
    get: () => ({ aheadMs: ++asked === 1 ? 8 * DAY_MS : -DAY_MS, uncertaintyMs: 1 }),
  });
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(asked).toBe(2);
  expect(world.endings).toEqual([]);
  expect((await world.attempts(1)).at(-1)).toMatchObject({ outcome: 'abandoned' });
});
