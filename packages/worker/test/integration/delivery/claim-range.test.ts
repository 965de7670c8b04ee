/** A woken range of webhooks: each is drained by one process, and a workspace that is closed is not searched for ever. */
import type { Database } from '@sluice/database/connection/connection';
import { insertTestWebhook } from '@sluice/database/testing/test-tenants';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { deleteWebhook } from '@sluice/database/webhooks/webhooks';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { rangeOf } from '@sluice/domain/wake-ups/lane-ranges';
import { sql } from 'kysely';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { claimRange, type ClaimRangeDeps } from '../../../src/delivery/claim-range.ts';
import {
  ALIVE,
  createGate,
  createHearing,
  createLaneWorld,
  eventIds,
  LEASE_MS,
  OK,
  POLICY,
  storeOf,
  until,
  type LaneWorld,
} from '../support/lane-world.ts';

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

function depsOf(world: LaneWorld, woken: LaneKey[]): ClaimRangeDeps {
  return {
    presence: ALIVE,
    leases: { timeoutMs: 4_000, leaseMs: LEASE_MS, timeSliceMs: 50_000 },
    monotonicNow: () => performance.now(),
    store: storeOf(world),
    wakeEach: async (lanes) => void woken.push(...lanes),
  };
}

test('a webhook that was claimed with its range is sent in order, and no second search finds it meanwhile', async () => {
  const world = await createLaneWorld(database);
  await world.log(5);
  const woken: LaneKey[] = [];
  const deps = depsOf(world, woken);
  const [taken, ...others] = await claimRange(deps, rangeOf(world));
  expect(others).toEqual([]);
  expect(await claimRange(deps, rangeOf(world))).toEqual([]);
  expect(await world.deliver()).toEqual({ outcome: 'held' });
  expect(await world.deliver({}, taken)).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(eventIds(1, 5));
  expect(woken).toEqual([]);
});

test('a webhook that waits for its rate is claimed with its range, sends no request before, and is woken in time', async () => {
  const world = await createLaneWorld(database, { rateLimitPerSecond: 1 });
  await world.log(1);
  expect(await world.deliver()).toEqual({ outcome: 'idle' });
  // No timer: all was sent. The next event comes within the second.
  expect(world.wakes).toEqual([]);
  const nextStartAtMs = (await world.lane())?.nextStartAtMs;
  world.nowMs += 300;
  await world.log(1);
  const [taken] = await claimRange(depsOf(world, []), rangeOf(world));
  expect(taken).toBeDefined();
  expect(await world.deliver({}, taken)).toEqual({ outcome: 'waiting', untilMs: nextStartAtMs });
  expect(world.sent).toEqual(eventIds(1, 1));
  expect(world.wakes).toEqual([nextStartAtMs]);
  world.nowMs = nextStartAtMs as number;
  expect(await world.deliver()).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(eventIds(1, 2));
});

test('two workers that search a range at the same moment drain each webhook once', async () => {
  const worlds = [await createLaneWorld(database)];
  const [world] = worlds as [LaneWorld];
  for (let count = 0; count < 7; count++)
    await insertTestWebhook(database, world.environmentId, { endpoint: 'http://receiver.test/' });
  await world.log(1);
  // Both have chosen the webhooks, and wait for their rows.
  const chosen = createGate();
  const released = createGate();
  onTestFinished(() => released.open());
  const holding = database.transaction().execute(async (transaction) => {
    await sql`
      select from lanes where environment_id = ${world.environmentId} for no key update`.execute(
      transaction,
    );
    chosen.open();
    await released.opened;
  });
  await chosen.opened;
  const deps = depsOf(world, []);
  const searches = [claimRange(deps, rangeOf(world)), claimRange(deps, rangeOf(world))];
  await until(async () => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`.execute(database);
    return rows[0]?.count === 2;
  });
  released.open();
  await holding;
  const claimed = (await Promise.all(searches))
    .flat()
    .map(({ claimed: { webhookId } }) => webhookId);
  expect(claimed).toHaveLength(8);
  expect(new Set(claimed).size).toBe(8);
});

test('a worker that others may take for dead searches no range', async () => {
  const world = await createLaneWorld(database);
  await world.log(1);
  const failing = {
    ...ALIVE,
    isShown: false,
    shown: () => Promise.reject(new Error('no session')),
  };
  await expect(
    claimRange({ ...depsOf(world, []), presence: failing }, rangeOf(world)),
  ).rejects.toThrow('no session');
  expect(await world.lane()).toMatchObject({ isHeld: false });
});

test.each([
  ['paused', (world: LaneWorld) => world.change({ disabled: true })],
  ['fenced', (world: LaneWorld) => deleteWebhook(database, world.environmentId, world.webhookId)],
])(
  'a webhook that is %s after its claim gets no more once the worker knows',
  async (outcome, end) => {
    const world = await createLaneWorld(database);
    await world.log(300);
    const [taken] = await claimRange(depsOf(world, []), rangeOf(world));
    const { made, heard, watch } = createHearing();
    world.behave = async (_, eventId) => {
      if (eventId === 'e3') {
        await end(world);
        made();
      } else if (Number(eventId.slice(1)) > 3) await heard;
      return OK;
    };
    const store = storeOf(world);
    const delivering = world.deliver(
      { store: { ...store, keep: watch((report) => store.keep(report)) } },
      taken,
    );
    expect(await delivering).toEqual({ outcome });
    // Up to the concurrency limit were under way.
    expect(world.sent.length).toBeLessThan(3 + 2 * POLICY.windowMax);
    expect(await claimRange(depsOf(world, []), rangeOf(world))).toEqual([]);
  },
);

test('a range with due webhooks costs one statement', async () => {
  const world = await createLaneWorld(database);
  await world.log(1);
  const deps = depsOf(world, []);
  const store = { ...deps.store, listDue: () => Promise.reject(new Error('a second statement')) };
  expect(await claimRange({ ...deps, store }, rangeOf(world))).toHaveLength(1);
});

test('the webhooks of a closed workspace are woken one by one, and then no search finds them again', async () => {
  const world = await createLaneWorld(database);
  await world.log(1);
  await sql`
    update environments set deleted_at = now() where environment_id = ${world.environmentId}`.execute(
    database,
  );
  const woken: LaneKey[] = [];
  const deps = depsOf(world, woken);
  expect(await claimRange(deps, rangeOf(world))).toEqual([]);
  expect(woken).toEqual([world.key]);
  expect(await world.deliver()).toEqual({ outcome: 'paused' });
  expect(await claimRange(deps, rangeOf(world))).toEqual([]);
  expect(woken).toEqual([world.key]);
  expect(world.sent).toEqual([]);
});
