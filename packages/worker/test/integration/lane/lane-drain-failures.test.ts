/** Drains that end with an error: their requests, their statements, and the error. */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { AppError } from '@sluice/domain/values/errors';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { createFewPermits } from '../support/few-permits.ts';
import {
  allowEight,
  createGate,
  createLaneWorld,
  endLeases,
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

test('a request without any outcome gives its permit back and ends the drain, and is sent again', async () => {
  await world.log(2);
  world.behave = () => {
    throw new Error('broken');
  };
  const { permits } = createFewPermits(1);
  await expect(
    world.deliver({ permits: { deliveries: permits, probes: permits } }),
  ).rejects.toThrow('broken');
  expect(permits.heldCount).toBe(0);
  world.behave = () => OK;
  await endLeases(world);
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(['e1', 'e1', 'e2']);
});

test('of two errors the first one ends the drain', async () => {
  await allowEight(world);
  await world.log(2);
  const gate = createGate();
  world.behave = async (_, eventId) => {
    await gate.opened;
    throw new Error(`broken at ${eventId}`);
  };
  const delivering = world.deliver();
  await until(() => world.sent.length === 2);
  gate.open();
  await expect(delivering).rejects.toThrow('broken at e1');
});

test('a drain that has failed starts no other request when one ends that was under way', async () => {
  await allowEight(world);
  await world.log(3);
  const gate = createGate();
  world.behave = async (_, eventId) => {
    if (eventId === 'e1') throw new Error('broken');
    await gate.opened;
    return OK;
  };
  await expect(world.deliver({ policy: { ...POLICY, windowMax: 2 } })).rejects.toThrow('broken');
  expect(world.sent).toEqual(eventIds(1, 2));
  gate.open();
  await nextTurn();
  await nextTurn();
  expect(world.sent).toEqual(eventIds(1, 2));
});

test('a drain that has failed ends after the statement that is under way', async () => {
  await allowEight(world);
  await world.log(2);
  const broken = createGate();
  world.behave = async (_, eventId) => {
    if (eventId === 'e1') return status(500);
    await broken.opened;
    throw new Error('broken');
  };
  const store = storeOf(world);
  const mayStore = createGate();
  let isStoring = false;
  const keep: typeof store.keep = async (report) => {
    isStoring = true;
    await mayStore.opened;
    return store.keep(report);
  };
  let hasEnded = false;
  const delivering = world
    .deliver({ store: { ...store, keep } })
    .finally(() => (hasEnded = true))
    .catch((error: Error) => error.message);
  await until(() => isStoring);
  broken.open();
  await nextTurn();
  await nextTurn();
  expect(hasEnded).toBe(false);
  mayStore.open();
  expect(await delivering).toBe('broken');
  expect(await world.attempts(1)).toHaveLength(1);
});

test('a log that cannot be read ends the drain with its error once the sent deliveries are stored', async () => {
  await allowEight(world);
  await world.log(64);
  const store = storeOf(world);
  const gate = createGate();
  let loads = 0;
  world.behave = async () => {
    await nextTurn();
    if (loads === 2) await gate.opened;
    return OK;
  };
  const load: typeof store.load = (request) =>
    ++loads === 1 ? store.load(request) : Promise.reject(new Error('no log'));
  const delivering = world.deliver({ store: { ...store, load } });
  void delivering.catch(() => {});
  await until(() => loads === 2);
  await nextTurn();
  await nextTurn();
  const sent = [...world.sent];
  expect(sent.length).toBeLessThan(32);
  gate.open();
  await expect(delivering).rejects.toThrow('no log');
  expect(world.sent).toEqual(sent);
  expect(await world.lane()).toMatchObject({ cursor: sent.length, isHeld: false });
});

test('a failure that must not be stored ends the drain with its error, although a request hangs', async () => {
  await allowEight(world);
  await world.log(2);
  const gate = createGate();
  world.behave = async (_, eventId) => {
    if (eventId === 'e1') return status(500);
    await gate.opened;
    return OK;
  };
  const confirmFailure = () => Promise.reject(new AppError('CLOCK_WRONG', 'a wrong clock'));
  await expect(world.deliver({ confirmFailure })).rejects.toThrow('a wrong clock');
  expect(await world.attempts(1)).toEqual([]);
  gate.open();
});

test('a wait for the rate that breaks ends the drain with its error', async () => {
  world = await createLaneWorld(database, { rateLimitPerSecond: 2 });
  await allowEight(world);
  await world.log(2);
  const answer = holdEach(world, ['e1']);
  const pause = () => Promise.reject(new Error('no timers'));
  await expect(world.deliver({ pause })).rejects.toThrow('no timers');
  expect(world.sent).toEqual(['e1']);
  answer('e1');
});
