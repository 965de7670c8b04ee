/** A worker shows that it lives by a session of Postgres. If that ends and the worker lives, it stays the holder. */
import { listDepartedWorkers } from '@sluice/database/maintenance/worker-processes';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { WorkerPresence } from '../../../src/process/worker-presence.ts';
import { createLaneWorld } from '../support/lane-world.ts';

const WAIT = { timeout: 30_000, interval: 20 };

async function startPresence(
  url: string,
  brokerWorkerIds: () => readonly string[] = () => [],
  hungAfterMs = 60_000,
) {
  const presence = new WorkerPresence({
    url,
    applicationName: 'test',
    brokerWorkerIds,
    hungAfterMs,
    monotonicNow: () => performance.now(),
    logger: createLogger('test', 'silent'),
  });
  await presence.start();
  onTestFinished(() => presence.stop());
  return presence;
}

test('a session that an operator ends is opened again, under the same number', async () => {
  const { database, url } = await createTestDatabase();
  const presence = await startPresence(url);
  const { processId } = presence;
  expect(presence.isShown).toBe(true);
  /** The servers of its sessions. */
  const servers = async (): Promise<number[]> => {
    const { rows } = await sql<{ pid: number }>`
      select pid from pg_stat_activity
       where application_name = 'test presence' and datname = current_database()`.execute(database);
    return rows.map(({ pid }) => pid);
  };
  for (let times = 0; times < 3; times++) {
    const [before] = await servers();
    const lostAtMs = performance.now();
    await sql`select pg_terminate_backend(${before}::int)`.execute(database);
    await vi.waitFor(async () => {
      const [now] = await servers();
      expect(now).toBeDefined();
      expect(now).not.toBe(before);
    }, WAIT);
    await presence.shown();
    // Work that it claimed before is not taken for its own without asking.
    expect(presence.shownSinceMs).toBeGreaterThan(lostAtMs);
    expect(presence.processId).toBe(processId);
    expect(await listDepartedWorkers(database)).toEqual([]);
  }
});

test('workers of the broker that come later are published too', async () => {
  const { database, url } = await createTestDatabase();
  const ids = ['first'];
  const presence = await startPresence(url, () => ids);
  ids.push('second');
  await vi.waitFor(async () => {
    const { rows } = await sql`select broker_worker_ids as ids from worker_processes`.execute(
      database,
    );
    expect(rows).toEqual([{ ids: ['first', 'second'] }]);
  }, WAIT);
  await presence.stop();
  const { rows } = await sql`select from worker_processes`.execute(database);
  expect(rows).toEqual([]);
});

test('a wake-up does not wait for ever for a session that Postgres does not give', async () => {
  const { url, name } = await createTestDatabase();
  const presence = await startPresence(url, undefined, 100);
  const { database: aside } = await createTestDatabase();
  const allow = (isAllowed: boolean) =>
    sql`alter database ${sql.id(name)} with allow_connections ${sql.lit(isAllowed)}`.execute(aside);
  await allow(false);
  await sql`
    select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'test presence' and datname = ${name}`.execute(aside);
  await vi.waitFor(() => expect(presence.isShown).toBe(false), WAIT);
  await expect(presence.shown()).rejects.toThrow('no session of Postgres');
  // The next one waits again, and is not kept waiting once there is a session.
  const later = vi.waitFor(() => presence.shown(), WAIT);
  await allow(true);
  await later;
  expect(presence.isShown).toBe(true);
});

test('no delivery is sent while the others may take this process for dead', async () => {
  const { database } = await createTestDatabase();
  const world = await createLaneWorld(database);
  await world.log(3);
  const shown = Promise.withResolvers<void>();
  const presence = {
    processId: 1,
    isShown: true,
    shownSinceMs: 0,
    shown: () => shown.promise,
  };
  const delivery = world.deliver({ presence });
  presence.isShown = false;
  shown.resolve();
  // Claimed, and released without a delivery.
  expect(await delivery).toEqual({ outcome: 'more' });
  expect(world.sent).toEqual([]);
  presence.isShown = true;
  await world.deliverAll({ presence });
  expect(world.sent).toEqual(['e1', 'e2', 'e3']);
});
