/** A worker shows that it lives by a session of Postgres. If that ends and the worker lives, it stays the holder. */
import { listDepartedWorkers } from '@sluice/database/maintenance/worker-processes';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { WorkerPresence } from '../../../src/process/worker-presence.ts';
import { createLaneWorld } from '../support/lane-world.ts';

const WAIT = { timeout: 30_000, interval: 20 };

async function startPresence(url: string, brokerWorkerIds: () => readonly string[] = () => []) {
  const presence = new WorkerPresence({
    url,
    applicationName: 'test',
    brokerWorkerIds,
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
    await sql`select pg_terminate_backend(${before}::int)`.execute(database);
    await vi.waitFor(async () => {
      const [now] = await servers();
      expect(now).toBeDefined();
      expect(now).not.toBe(before);
    }, WAIT);
    await presence.shown();
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

test('no delivery is sent while the others may take this process for dead', async () => {
  const { database } = await createTestDatabase();
  const world = await createLaneWorld(database);
  await world.log(3);
  const shown = Promise.withResolvers<void>();
  const presence = { processId: 1, isShown: true, shown: () => shown.promise };
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
