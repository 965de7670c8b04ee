import { existsSync, readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  createDatabase,
  answeredWithin,
  type Database,
  type DatabaseOrTransaction,
} from '../../../src/connection/connection.ts';
import { isDatabaseAway } from '../../../src/connection/database-away.ts';
import { startSessionPooler } from '../../../src/testing/session-pooler.ts';
import { createTestDatabase, type TestDatabase } from '../../../src/testing/testing.ts';

const WAIT = { timeout: 30_000, interval: 20 };

function openOneConnection({ url }: TestDatabase, statementMsMax?: number): Database {
  const database = createDatabase({
    url,
    poolMax: 1,
    applicationName: 'one connection',
    ...(statementMsMax !== undefined && { statementMsMax }),
    onError: () => undefined,
  });
  onTestFinished(() => database.destroy());
  return database;
}

const pidOf = async (database: Database): Promise<number> => {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(database);
  return rows[0]?.pid as number;
};

/** Postgres goes on with a statement whose connection is gone; the test's database is to be dropped. */
const endInPostgres = (database: Database, pid: number) =>
  vi.waitFor(async () => {
    await sql`select pg_terminate_backend(${pid}::int)`.execute(database);
    const { rows } = await sql`select from pg_stat_activity where pid = ${pid}`.execute(database);
    expect(rows).toEqual([]);
  }, WAIT);

test('an answer that does not come in the time of its statement ends its connection, whose place in the pool is free again', async () => {
  const testDatabase = await createTestDatabase();
  const database = openOneConnection(testDatabase);
  const pid = await pidOf(database);
  await expect(sql`${answeredWithin(50)} select pg_sleep(600)`.execute(database)).rejects.toThrow(
    'Connection terminated: Postgres did not answer in 50 ms',
  );
  expect(await pidOf(database)).not.toBe(pid);
  await endInPostgres(testDatabase.database, pid);
});

test('a statement that is answered in time keeps its connection and fails with its own error', async () => {
  const database = openOneConnection(await createTestDatabase());
  const pid = await pidOf(database);
  await expect(sql`${answeredWithin(600_000)} select 1 / 0`.execute(database)).rejects.toThrow(
    'division by zero',
  );
  expect(await pidOf(database)).toBe(pid);
});

// The deadline passed in a stall of seconds, and the connection with the unread answer was ended: /readyz answered 503.
test('an answer that comes while the process stands still is in time, though the deadline passes too', async () => {
  const database = openOneConnection(await createTestDatabase());
  const pid = await pidOf(database);
  const asked = sql<{ one: number }>`${answeredWithin(500)} select 1 as one`.execute(database);
  // Until the statement is sent. Its answer may be read by now, if Postgres is that fast.
  await new Promise((resolve) => setImmediate(resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_000);
  expect((await asked).rows).toEqual([{ one: 1 }]);
  expect(await pidOf(database)).toBe(pid);
});

// A reader that only goes away would leave a backend that waits, and come again with another.
test('if all statements are short, Postgres ends a statement that waits for a lock, and the connection stays', async () => {
  const testDatabase = await createTestDatabase();
  // Postgres gives up two seconds earlier than this end.
  const database = openOneConnection(testDatabase, 10_000);
  // A standstill may outlast the two seconds: then again.
  await vi.waitFor(
    async () => {
      const pid = await pidOf(database);
      await testDatabase.database.transaction().execute(async (transaction) => {
        await sql`lock table installation in access exclusive mode`.execute(transaction);
        await expect(sql`select from installation`.execute(database)).rejects.toThrow(
          'canceling statement due to statement timeout',
        );
      });
      expect(await pidOf(database)).toBe(pid);
    },
    { timeout: 80_000, interval: 20 },
  );
});

// As after a failover in which the old primary goes on as a replica and keeps its connections.
test('a read-only connection is closed, also by a transaction, and the failure counts as a database that is away', async () => {
  const database = openOneConnection(await createTestDatabase());
  const write = (to: DatabaseOrTransaction) =>
    sql`update installation set shard_count = shard_count`.execute(to);
  for (const tryToWrite of [
    () => write(database),
    () => database.transaction().execute((transaction) => write(transaction)),
  ]) {
    await sql`set default_transaction_read_only = on`.execute(database);
    const error: unknown = await tryToWrite().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: '25006' });
    expect(isDatabaseAway(error)).toBe(true);
    await tryToWrite();
  }
});

test('without a deadline a statement takes as long as it takes', async () => {
  const database = openOneConnection(await createTestDatabase());
  const { rows } = await sql<{ timeout: string }>`
    select current_setting('statement_timeout') as timeout`.execute(database);
  expect(rows).toEqual([{ timeout: '0' }]);
});

const SOCKETS_FILE = '/proc/net/tcp';
const ESTABLISHED = '01';
const KEEP_ALIVE_TIMER = '02';
const TICKS_PER_SECOND = 100;

test.runIf(existsSync(SOCKETS_FILE))(
  'a connection that only waits asks for a sign of life within a minute, so that a host that died is noticed',
  async () => {
    const database = openOneConnection(await createTestDatabase());
    const { rows } = await sql<{ local: string; remote: string }>`
      select lpad(to_hex(inet_client_port()), 4, '0') as local,
             lpad(to_hex(inet_server_port()), 4, '0') as remote`.execute(database);
    const ends = rows.flatMap(({ local, remote }) => [local, remote]).map((port) => `:${port}`);
    // sl, local address, remote address, state, queues, timer:when, … A port alone is not enough:
    // a connection that was closed a moment ago keeps its port in a line of its own.
    const timerOf = (): readonly string[] => {
      const socket = readFileSync(SOCKETS_FILE, 'utf8')
        .toLowerCase()
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .find(
          ([, local, remote, state]) =>
            state === ESTABLISHED &&
            [local, remote].every((address, index) => address?.endsWith(ends[index] ?? '')),
        );
      return socket?.[5]?.split(':') ?? [];
    };
    // Linux may leave out a line while other connections come and go.
    await vi.waitFor(() => {
      const [timer, ticks = ''] = timerOf();
      expect(timer).toBe(KEEP_ALIVE_TIMER);
      expect(Number.parseInt(ticks, 16) / TICKS_PER_SECOND).toBeLessThan(60);
    }, WAIT);
  },
);

// `set` waited without an end, and kept its place in the pool.
test('a connection that does not get its limits in time ends, and the next statement makes another', async () => {
  const { url } = await createTestDatabase();
  const pooler = await startSessionPooler(url, (clientCount) =>
    clientCount > 1 ? 'session' : 'silent',
  );
  const database = createDatabase({
    url: pooler.url,
    poolMax: 1,
    applicationName: 'limits',
    idleInTransactionMsMax: 60_000,
    connectMsMax: 5_000,
    onError: () => undefined,
  });
  onTestFinished(async () => {
    await pooler.close();
    await database.destroy();
  });
  const failure: unknown = await pidOf(database).catch((error: unknown) => error);
  expect(isDatabaseAway(failure)).toBe(true);
  // A busy Postgres may miss the time too.
  await vi.waitFor(async () => expect(await pidOf(database)).toBeGreaterThan(0), WAIT);
});

test.each([
  ['off', 'on'],
  ['on', 'on'],
  ['remote_write', 'remote_write'],
])(
  'with synchronous_commit = %s in the database, a service waits for %s',
  async (setting, expected) => {
    const { database, name, url } = await createTestDatabase();
    await sql`alter database ${sql.id(name)} set synchronous_commit = ${sql.lit(setting)}`.execute(
      database,
    );
    const service = createDatabase({
      url,
      poolMax: 1,
      applicationName: 'a service',
      confirmsOnDisk: true,
      onError: () => undefined,
    });
    onTestFinished(() => service.destroy());
    const { rows } = await sql<{ setting: string }>`
      select current_setting('synchronous_commit') as setting`.execute(service);
    expect(rows).toEqual([{ setting: expected }]);
  },
);
