/** A path to Postgres that drops packets silently. Statements of any length run on it. */
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { isDatabaseAway } from '@sluice/database/connection/database-away';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startTcpProxy } from '@sluice/database/testing/tcp-proxy';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';

const WAIT = { timeout: 30_000, interval: 20 };
const LATE_AFTER_MS = 200;

async function startWorld() {
  const { database: direct, url } = await createTestDatabase();
  const address = new URL(url);
  const proxy = await startTcpProxy(address.hostname, Number(address.port));
  address.host = `127.0.0.1:${proxy.port}`;
  const database = createDatabase({
    url: address.href,
    poolMax: 1,
    applicationName: 'silent path',
    lateAfterMs: LATE_AFTER_MS,
    onError: () => undefined,
  });
  onTestFinished(async () => {
    // First: a statement that is still waited for would keep the pool from ending.
    await proxy.close();
    await database.destroy();
  });
  return { direct, database, proxy };
}

const pidOf = async (database: Database): Promise<number> => {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(database);
  return rows[0]?.pid as number;
};

const fails = async (database: Database, statement = sql`select 1`): Promise<boolean> => {
  const error: unknown = await statement.execute(database).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return isDatabaseAway(error);
};

// It used to wait until TCP gave up, a quarter of an hour.
test('a statement on a connection that a firewall forgot fails as away, and the next one has another connection', async () => {
  const { database, proxy } = await startWorld();
  const pid = await pidOf(database);
  proxy.forget();
  expect(await fails(database)).toBe(true);
  expect(await pidOf(database)).not.toBe(pid);
});

test('a statement whose answer is lost fails as away while Postgres is idle again', async () => {
  const { direct, database, proxy } = await startWorld();
  const pid = await pidOf(database);
  const stateIs = (wanted: string) =>
    vi.waitFor(async () => {
      const { rows } = await sql<{ state: string }>`
        select state from pg_stat_activity where pid = ${pid}`.execute(direct);
      expect(rows).toEqual([{ state: wanted }]);
    }, WAIT);
  // It waits for the test, so that its answer comes after the loss of the path.
  const transaction = await direct.startTransaction().execute();
  await sql`select pg_advisory_xact_lock(1)`.execute(transaction);
  const asked = fails(database, sql`select pg_advisory_xact_lock(1)`);
  await stateIs('active');
  proxy.forget();
  await transaction.commit().execute();
  await stateIs('idle');
  expect(await asked).toBe(true);
});

test('a statement fails as away if Postgres can no longer be reached', async () => {
  const { database, proxy } = await startWorld();
  await pidOf(database);
  proxy.hold();
  expect(await fails(database)).toBe(true);
  proxy.restore();
  expect(await pidOf(database)).toBeGreaterThan(0);
});

test('a statement that Postgres is at work on is waited for as long as it takes', async () => {
  const { database } = await startWorld();
  const pid = await pidOf(database);
  await sql`select pg_sleep(${(8 * LATE_AFTER_MS) / 1_000})`.execute(database);
  expect(await pidOf(database)).toBe(pid);
});

test('a statement that waits for a lock is waited for too', async () => {
  const { direct, database } = await startWorld();
  const pid = await pidOf(database);
  const transaction = await direct.startTransaction().execute();
  await sql`lock table installation in access exclusive mode`.execute(transaction);
  const waiting = sql`select from installation`.execute(database);
  const startedAtMs = performance.now();
  await vi.waitFor(
    () => expect(performance.now() - startedAtMs).toBeGreaterThan(8 * LATE_AFTER_MS),
    WAIT,
  );
  await transaction.commit().execute();
  await waiting;
  expect(await pidOf(database)).toBe(pid);
});
