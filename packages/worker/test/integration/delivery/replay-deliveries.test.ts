/** A replay over a real log: it is sent again, in order, beside the webhook's own lane. */
import type { Database } from '@sluice/database/connection/connection';
import { listDeliveries } from '@sluice/database/delivery/delivery-reads';
import {
  cancelReplay,
  clearReplays,
  findReplay,
  listAttemptsOfReplay,
} from '@sluice/database/replays/replays';
import { startReplay } from '@sluice/database/replays/replay-start';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { beforeEach, expect, test } from 'vitest';
import {
  createGate,
  createHearing,
  endLeases,
  eventIds,
  HOUR_MS,
  OK,
  status,
  until,
} from '../support/lane-world.ts';
import { ALL, createDelivered, replayAll, start } from '../support/replay-world.ts';

let database: Database;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
});

test('sends all matches in order, with the same bytes, and leaves the log and its lane as they are', async () => {
  const world = await createDelivered(database, 300);
  const [lane, log] = [await world.lane(), await listDeliveries(database, world.key, 300)];
  const { key, find } = await start(world);
  expect(await find()).toMatchObject({ state: 'running', total: 300, delivered: 0 });
  await replayAll(world, find);
  expect(world.sent).toEqual(eventIds(1, 300));
  expect(await find()).toMatchObject({ state: 'done', delivered: 300, abandoned: 0 });
  expect(await world.lane()).toEqual(lane);
  expect(await listDeliveries(database, world.key, 300)).toEqual(log);
  const attempts = await listAttemptsOfReplay(database, key, { sequence: 298, attempt: 1 }, 10);
  expect(attempts).toMatchObject([
    { sequence: 299, attempt: 1, outcome: 'delivered', status: 200 },
    { sequence: 300, attempt: 1, outcome: 'delivered' },
  ]);
  expect(await world.replay()).toBe(false);
});

test('live deliveries are not delayed by a replay that waits, nor by one that hangs', async () => {
  const world = await createDelivered(database, 20);
  const { key } = await start(world);
  const [begun, gate] = [createGate(), createGate()];
  const hanging = world.replay({
    post: async () => {
      begun.open();
      await gate.opened;
      return OK;
    },
  });
  // After a cancel before the claim the replay would be empty.
  await begun.opened;
  await world.log(5);
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(eventIds(21, 25));
  await cancelReplay(database, key, BY_TEST, world.nowMs);
  gate.open();
  expect(await hanging).toBe(true);
});

test('it keeps its own rate, or the rate limit of the webhook if that is lower', async () => {
  for (const [rate, limit] of [
    [10, null],
    [500, 10],
  ] as const) {
    const world = await createDelivered(database, 30);
    const changes = { rateLimitPerSecond: limit };
    await world.change(changes);
    const { find } = await start(world, ALL, rate);
    const startedAtMs = world.nowMs;
    while ((await find()).state === 'running') {
      await world.replay();
      world.nowMs += 10;
    }
    expect(world.sent).toHaveLength(30);
    expect(world.nowMs - startedAtMs).toBeGreaterThan(2_700);
    expect(world.nowMs - startedAtMs).toBeLessThan(3_500);
  }
});

test('a failed delivery waits by the schedule, the deliveries behind it wait too, and the lane stays healthy', async () => {
  const world = await createDelivered(database, 4);
  const changes = { windowMax: 1 };
  await world.change(changes);
  const { key, find } = await start(world);
  let failures = 2;
  world.behave = (_, eventId) => (eventId === 'e2' && failures-- > 0 ? status(500) : OK);
  await world.replay();
  expect(await find()).toMatchObject({ state: 'running', isFailing: true, delivered: 1 });
  expect(await world.replay()).toBe(false);
  expect((await find()).nextProbeAt?.getTime()).toBe(world.nowMs + HOUR_MS + 3);
  expect(await world.lane()).toMatchObject({ state: 'healthy' });
  while ((await find()).state === 'running') {
    world.nowMs += HOUR_MS;
    while (await world.replay());
  }
  expect(world.sent).toEqual(['e1', 'e2', 'e2', 'e2', 'e3', 'e4']);
  const attempts = await listAttemptsOfReplay(database, key, { sequence: 1, attempt: 1 }, 4);
  expect(attempts).toMatchObject([
    { sequence: 2, attempt: 1, outcome: 'retrying', status: 500 },
    { sequence: 2, attempt: 2, outcome: 'retrying' },
    { sequence: 2, attempt: 3, outcome: 'delivered' },
    { sequence: 3, attempt: 1 },
  ]);
});

test('after a worker dies, another finishes the replay and repeats only deliveries that were not kept', async () => {
  const world = await createDelivered(database, 40);
  const { find } = await start(world);
  const gate = createGate();
  // e5 hangs for ever as far as this worker is concerned; others beside it end and are kept.
  world.behave = async (_, eventId) => {
    if (eventId === 'e5') await gate.opened;
    return OK;
  };
  const dying = world.replay();
  await until(async () => (await find()).delivered > 3);
  world.behave = () => OK;
  await until(async () => {
    // Again and again: it may still have stored progress, which prolongs its lease.
    await endLeases(world);
    await world.replay();
    world.nowMs += 100;
    return (await find()).state === 'done';
  });
  gate.open();
  await dying;
  expect(await find()).toMatchObject({ delivered: 40, abandoned: 0 });
  expect(new Set(world.sent)).toEqual(new Set(eventIds(1, 40)));
  expect(world.sent.filter((eventId) => eventId === 'e5')).toHaveLength(2);
});

test('after a cancel it starts no new delivery and keeps the ones on their way', async () => {
  const world = await createDelivered(database, 200);
  const { key, find } = await start(world);
  const hearing = createHearing();
  world.behave = async (_, eventId) => {
    if (eventId === 'e3') {
      await cancelReplay(database, key, BY_TEST, world.nowMs);
      hearing.made();
    } else if (Number(eventId.slice(1)) > 3) await hearing.heard;
    await new Promise((resolve) => setTimeout(resolve, 2));
    return OK;
  };
  await world.replay({
    tracedReplay: (store) => ({
      load: (request) => store.load(request),
      keep: hearing.watch((report) => store.keep(report)),
    }),
  });
  const after = await find();
  expect(after).toMatchObject({ state: 'cancelled', endedAt: expect.any(Date) });
  expect(after.delivered).toBe(world.sent.length);
  expect(world.sent.length).toBeLessThan(200);
  world.nowMs += 10_000;
  expect(await world.replay()).toBe(false);
  // Another one can be started.
  const again = await start(world, { eventTypes: ['customer_subscribed'] });
  await cancelReplay(database, again.key, BY_TEST, world.nowMs);
});

test('of a disabled webhook waits until it is enabled', async () => {
  const world = await createDelivered(database, 3);
  const { find } = await start(world);
  const change = (disabled: boolean) => world.change({ disabled });
  await change(true);
  expect(await world.replay()).toBe(false);
  await change(false);
  await replayAll(world, find);
  expect(world.sent).toEqual(eventIds(1, 3));
});

test('one at a time for a webhook, and only so long as it is kept', async () => {
  const world = await createDelivered(database, 1);
  const { key, find } = await start(world);
  const request = { criteria: ALL, ratePerSecond: 1, createdBy: 'a test' };
  expect(await startReplay(database, world.key, request, BY_TEST, world.nowMs)).toEqual({
    outcome: 'running',
  });
  await clearReplays(database, world.nowMs + HOUR_MS, 10);
  await replayAll(world, find);
  await clearReplays(database, world.nowMs - HOUR_MS, 10);
  expect(await find()).toMatchObject({ state: 'done' });
  await clearReplays(database, world.nowMs + HOUR_MS, 10);
  expect(await findReplay(database, key)).toBeUndefined();
  expect(await listAttemptsOfReplay(database, key, { sequence: 0, attempt: 0 }, 10)).toEqual([]);
});
