/** Requests, statements and reads of a drain after a request has ended. */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { IdleTime } from '../../../src/scheduling/idle-time.ts';
import {
  allowEight,
  createLaneWorld,
  eventIds,
  holdEach,
  OK,
  POLICY,
  status,
  storeOf,
  until,
  type LaneWorld,
} from '../support/lane-world.ts';

let database: Database;
let world: LaneWorld;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});
beforeEach(async () => {
  world = await createLaneWorld(database);
});

/** They end before a timer of the drain does. */
async function fewTurns(): Promise<void> {
  for (let turns = 0; turns < 4; turns++) await nextTurn();
}

/** A drain in a process without idle time, which would store successes after a quarter of a second. */
function watchBusyDrain() {
  const store = storeOf(world);
  const kept: { readonly attempts: number; readonly isLast: boolean }[] = [];
  const keep: typeof store.keep = (report) => {
    const { attempts, isLast } = report.progress;
    kept.push({ attempts: attempts.length, isLast });
    return store.keep(report);
  };
  let nowMs = 0;
  const idleTime = new IdleTime({ idleMs: () => 0, monotonicNow: () => (nowMs += 20) });
  return { kept, delivering: world.deliver({ store: { ...store, keep }, idleTime }) };
}

test('a success raises the concurrency limit, and two requests start in its place', async () => {
  await world.log(3);
  const answer = holdEach(world, eventIds(1, 3));
  const delivering = world.deliver();
  await until(() => world.sent.length === 1);
  answer('e1');
  await fewTurns();
  expect(world.sent).toEqual(eventIds(1, 3));
  for (const eventId of eventIds(2, 3)) answer(eventId);
  expect(await delivering).toEqual({ outcome: 'idle' });
});

// A crash must not shorten the wait.
test('a failure is stored at once beside a request that hangs', async () => {
  await allowEight(world);
  await world.log(2);
  const answer = holdEach(world, eventIds(1, 2), status(500));
  const { kept, delivering } = watchBusyDrain();
  await until(() => world.sent.length === 2);
  answer('e1');
  await fewTurns();
  expect(kept).toEqual([{ attempts: 1, isLast: false }]);
  answer('e2');
  expect(await delivering).toMatchObject({ outcome: 'waiting' });
});

test('a lane is given back as soon as its last request has ended', async () => {
  await allowEight(world);
  await world.log(2);
  const answer = holdEach(world, eventIds(1, 2));
  const { kept, delivering } = watchBusyDrain();
  await until(() => world.sent.length === 2);
  answer('e2');
  await fewTurns();
  expect(kept).toEqual([]);
  answer('e1');
  await fewTurns();
  expect(kept).toEqual([{ attempts: 2, isLast: true }]);
  expect(await delivering).toEqual({ outcome: 'idle' });
});

test('deliveries that another process logs are sent once progress was stored, while the first one hangs', async () => {
  await allowEight(world);
  await world.log(2);
  const answer = holdEach(world, ['e1']);
  const { behave } = world;
  world.behave = async (request, eventId) => {
    if (eventId === 'e2') await world.log(1);
    return behave(request, eventId);
  };
  const delivering = world.deliver();
  await until(() => world.sent.length === 3);
  expect(world.sent).toEqual(eventIds(1, 3));
  answer('e1');
  expect(await delivering).toEqual({ outcome: 'idle' });
});

test('a delivery that is given up is stored before the lane is given back, and a later one of another process is sent', async () => {
  await world.log(1);
  world.behave = async (_, eventId) => {
    if (eventId === 'e2') return OK;
    await world.log(1);
    return status(500);
  };
  const policy = { ...POLICY, giveUpAfterMs: 0 };
  expect(await world.deliver({ policy })).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(eventIds(1, 2));
});

test('a failed delivery without others beside it is stored and the lane given back in one statement', async () => {
  await world.log(1);
  world.behave = () => status(500);
  const store = storeOf(world);
  const keep = vi.spyOn(store, 'keep');
  expect(await world.deliver({ store })).toMatchObject({ outcome: 'waiting' });
  expect(keep).toHaveBeenCalledTimes(1);
});
