/**
 * Databases for tests: each a clone of one template, which the run's set-up has migrated
 * (`scripts/test-services.ts`). A file's clones are dropped when the file passes, and kept and
 * named when it fails. A client that a test forgot to close fails the file.
 *
 * Import it at the top of a test file: the cleaning up is registered on import, first, and so runs
 * last, after the file's own.
 */
import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import pg from 'pg';
import { afterAll, expect, inject, vi } from 'vitest';
import type { ChangeOrigin } from '../changes/record-change.ts';
import { createDatabase, type Database } from '../connection/connection.ts';
import type { DatabaseRole } from '../schema/role-grants.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A database of the test server from which others can be created and dropped. */
    readonly testServerUrl: string;
    /** The servers on which each database has to be made: that server, and on Citus each node of it too. */
    readonly testNodeUrls: readonly string[];
    /** The migrated database to clone. */
    readonly testTemplateName: string;
  }
}

/** The actor of changes that a test makes without the API. */
export const BY_TEST: ChangeOrigin = { actor: { type: 'system' } };

export interface TestDatabase {
  readonly database: Database;
  readonly url: string;
  readonly name: string;
  /**
   * Another pool, whose sessions have the rights of that role alone. Closed with `database`. On Citus it has all rights:
   * the nodes would be asked by the role, which cannot log in.
   *
   * @param place - `coordinator`: for tables of the coordinator only, with the rights of the role on Citus too.
   */
  readonly openAs: (role: DatabaseRole, place?: 'coordinator') => Database;
  /** Closes its pools and drops it now. Needed only to drop it before the file ends. */
  drop(): Promise<void>;
}

/** Connections end a moment after their clients have ended them, on a busy machine seconds after. */
const LEAK_DEADLINE_MS = 30_000;
const POLL_INTERVAL_MS = 20;
/** Of the 200 calls that a test makes at once the last has to wait for all the others, on a busy machine for long. */
const CONNECT_MS_MAX = 60_000;
/** A file of a database for each test drops fifty of them, on a busy machine at a second each. */
const DROP_TIMEOUT_MS = 180_000;

/** Each with the function that closes its pools. */
const created = new Map<TestDatabase, () => Promise<void>>();

/**
 * A migrated, empty database of this file's own; about 50 ms.
 *
 * @param timeZone - of its sessions. Absent: the server's.
 */
export async function createTestDatabase(timeZone?: string): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await onEachNode(async (client) => {
    // Postgres itself may look into the template, and waits only 5 s for its own process to leave. Its files are copied.
    // By default each page passes through the WAL: 105 ms of CPU for create and drop instead of 30.
    await untilUnused(() =>
      client.query(
        `create database ${name} template ${inject('testTemplateName')} strategy file_copy`,
      ),
    );
    if (timeZone !== undefined)
      await client.query(`alter database ${name} set timezone = '${timeZone}'`);
  });
  const url = new URL(inject('testServerUrl'));
  url.pathname = `/${name}`;
  const unexpected: Error[] = [];
  const pools: Database[] = [];
  const open = (poolUrl: URL): Database => {
    const pool = createDatabase({
      url: poolUrl.href,
      poolMax: 10,
      applicationName: 'test',
      connectMsMax: CONNECT_MS_MAX,
      onError: (error) => void unexpected.push(error),
    });
    pools.push(pool);
    return pool;
  };
  const close = async (): Promise<void> => {
    await Promise.all(pools.map((pool) => pool.destroy()));
  };
  const testDatabase: TestDatabase = {
    database: open(url),
    url: url.href,
    name,
    openAs(role, place) {
      const asRole = new URL(url);
      if (place === 'coordinator' || inject('testNodeUrls').length === 1)
        asRole.searchParams.set('options', `-c role=${role}`);
      return open(asRole);
    },
    async drop() {
      created.delete(testDatabase);
      await close();
      const leaked = await waitForClients(name);
      await onEachNode((client) => dropDatabase(client, name));
      if (leaked.length > 0) throw new Error(`clients that were not closed: ${leaked.join(', ')}`);
      if (unexpected.length > 0)
        throw new AggregateError(unexpected, 'connections of the test broke');
    },
  };
  created.set(testDatabase, close);
  return testDatabase;
}

// oxlint-disable-next-line no-empty-pattern -- vitest reads the parameter and insists on a pattern
afterAll(async ({}, file) => {
  const isFailed = hasFailed(file);
  for (const [testDatabase, close] of created) {
    if (!isFailed) {
      await testDatabase.drop();
      continue;
    }
    await close();
    // oxlint-disable-next-line no-console -- for the person who looks into the failure
    console.error(`kept for you to look into: database ${testDatabase.name}`);
  }
  created.clear();
}, DROP_TIMEOUT_MS);

interface Task {
  readonly result?: { readonly state: string } | undefined;
  readonly tasks?: readonly Task[];
}

function hasFailed(task: Task): boolean {
  return task.result?.state === 'fail' || (task.tasks ?? []).some((child) => hasFailed(child));
}

/** Waits for the last client to leave. @returns the names of the clients that stay. */
async function waitForClients(name: string): Promise<string[]> {
  const deadlineMs = performance.now() + LEAK_DEADLINE_MS;
  for (;;) {
    const { rows } = await onServer((client) =>
      client.query<{ name: string }>(
        `select coalesce(nullif(application_name, ''), left(query, 60)) as name
         from pg_stat_activity where datname = $1 and backend_type = 'client backend'
          -- Of the nodes of Citus to each other.
          and application_name not like 'citus\\_internal%'`,
        [name],
      ),
    );
    if (rows.length === 0 || performance.now() > deadlineMs) return rows.map((row) => row.name);
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

function onServer<Result>(use: (client: pg.Client) => Promise<Result>): Promise<Result> {
  return onNode(inject('testServerUrl'), use);
}

async function onEachNode(use: (client: pg.Client) => Promise<unknown>): Promise<void> {
  await Promise.all(inject('testNodeUrls').map((url) => onNode(url, use)));
}

const OBJECT_IN_USE = '55006';
const IN_USE_TRIES_MAX = 50;

/** Ends the sessions. Sessions between the nodes of Citus come again until the last node has no such database. */
function dropDatabase(client: pg.Client, name: string): Promise<void> {
  return untilUnused(() => client.query(`drop database if exists ${name} with (force)`));
}

/** Does it again while the database has sessions. */
async function untilUnused(run: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await run();
      return;
    } catch (error) {
      const isInUse = error instanceof pg.DatabaseError && error.code === OBJECT_IN_USE;
      if (!isInUse || tries === IN_USE_TRIES_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    }
  }
}

async function onNode<Result>(
  url: string,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/**
 * Number of the database's sessions that wait for a lock, on all nodes. Do not call it within a transaction, which sees
 * other sessions as they were at its first look.
 */
export async function lockWaiterCount(database: Database): Promise<number> {
  const { rows } = await sql<{ name: string; count: number }>`
    select current_database() as name, count(*)::int as count from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'`.execute(database);
  const { name = '', count = 0 } = rows[0] ?? {};
  const [, ...otherUrls] = inject('testNodeUrls');
  const counts = otherUrls.map((url) => onNode(url, (client) => countLockWaiters(client, name)));
  return (await Promise.all(counts)).reduce((sum, each) => sum + each, count);
}

async function countLockWaiters(client: pg.Client, name: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`,
    [name],
  );
  return rows[0]?.count ?? 0;
}

/** Waits until exactly so many sessions of the database wait for a lock; fails after a minute. */
export function untilLockWaiters(database: Database, count: number): Promise<void> {
  return vi.waitFor(async () => expect(await lockWaiterCount(database)).toBe(count), {
    timeout: 60_000,
    interval: 20,
  });
}
