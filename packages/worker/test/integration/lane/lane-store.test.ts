/**
 * Progress that a worker stores for many lanes at a time.
 *
 * Some of them have to wait for Postgres.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { LaneAfterProgress } from '@sluice/database/delivery/lane-progress';
import { createTestDatabase, untilLockWaiters } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import { createLaneWorld, HOUR_MS, storeOf, type LaneWorld } from '../support/lane-world.ts';

const LEASE_MS = 15_000;

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

test('the waiting progress of failing lanes does not block the progress of a healthy lane', async () => {
  const worlds = [
    await createLaneWorld(database),
    await createLaneWorld(database),
    await createLaneWorld(database),
  ] as const;
  const [firstFailing, secondFailing, healthy] = worlds;
  const store = storeOf(healthy);
  for (const world of worlds) await world.log(1);
  const fencings = await Promise.all(
    worlds.map(async ({ key }) => (await store.claim({ lane: key, leaseMs: LEASE_MS }))?.fencing),
  );
  const keep = (world: LaneWorld, nextProbeAtMs: number | null) =>
    store.keep({
      lane: world.key,
      fencing: fencings[worlds.findIndex(({ key }) => key === world.key)] ?? 0,
      leaseMs: LEASE_MS,
      progress: {
        snapshot: {
          state: nextProbeAtMs === null ? 'healthy' : 'failing',
          cursor: nextProbeAtMs === null ? 1 : 0,
          attemptedThrough: 1,
          nextProbeAtMs,
          concurrencyLimit: 1,
        },
        attempts: [],
        endpointVersion: 0,
        isLast: true,
      },
    });
  const failures: Promise<LaneAfterProgress | undefined>[] = [];
  // Somebody logs for the two that fail, and has not committed yet.
  await database.transaction().execute(async (transaction) => {
    for (const { environmentId } of [firstFailing, secondFailing])
      await sql`select from lanes where environment_id = ${environmentId} for update`.execute(
        transaction,
      );
    failures.push(keep(firstFailing, healthy.nowMs + HOUR_MS));
    await untilLockWaiters(database, 1);
    failures.push(keep(secondFailing, healthy.nowMs + HOUR_MS));
    // So that it is no part of the group of the healthy one.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(await keep(healthy, null)).toMatchObject({ lastSequence: 1, nextProbeAtMs: null });
  });
  const kept = await Promise.all(failures);
  expect(kept.map((after) => after?.nextProbeAtMs)).toEqual(
    Array.from({ length: 2 }, () => healthy.nowMs + HOUR_MS),
  );
});
