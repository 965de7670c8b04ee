/**
 * Connections of a process that stands still for longer than their deadline.
 *
 * A process that loads its modules on a busy machine does so. It took Postgres for silent, and its start failed.
 */
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../../../src/connection/connection.ts';
import { openSession } from '../../../src/connection/held-session.ts';
import { judgeSessions } from '../../../src/connection/kept-sessions.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const POOL_MS_MAX = 2_000;
/** Of a session beside the pool; it is no setting. */
const SESSION_MS_MAX = 5_000;

/** Longer than a deadline. */
const outlast = (deadlineMs: number): unknown =>
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, deadlineMs + 1_000);

/** Until a connection is under way. */
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

async function openDatabase() {
  const database = createDatabase({
    url: (await createTestDatabase()).url,
    poolMax: 1,
    applicationName: 'stalled',
    connectMsMax: POOL_MS_MAX,
    onError: () => undefined,
  });
  onTestFinished(() => database.destroy());
  return database;
}

test('a connection of the pool is made all the same', async () => {
  const database = await openDatabase();
  const asked = sql<{ one: number }>`select 1 as one`.execute(database);
  await nextTurn();
  outlast(POOL_MS_MAX);
  expect((await asked).rows).toEqual([{ one: 1 }]);
});

test('a statement that waits for a connection of the pool gets it all the same', async () => {
  const database = await openDatabase();
  const pidOf = () => sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(database);
  await pidOf();
  const both = Promise.all([pidOf(), pidOf()]);
  outlast(POOL_MS_MAX);
  const [one, other] = await both;
  expect(one.rows).toEqual(other.rows);
});

test('a session that a process keeps is opened all the same', async () => {
  const { url } = await createTestDatabase();
  const opening = openSession({ url, applicationName: 'stalled' }, () => undefined);
  await nextTurn();
  outlast(SESSION_MS_MAX);
  const session = await opening;
  onTestFinished(() => session.end());
  const answer = session.query<{ one: number }>('select 1 as one');
  outlast(SESSION_MS_MAX);
  expect((await answer).rows).toEqual([{ one: 1 }]);
});

test('the sessions of Postgres are judged all the same', async () => {
  const { url } = await createTestDatabase();
  const judged = judgeSessions({ url, applicationName: 'stalled' });
  await nextTurn();
  outlast(SESSION_MS_MAX);
  expect(await judged).toBe('kept');
});

// A statement would wait for ever behind others, and a call for an answer.
test('a statement waits for a connection of the pool no longer than its deadline', async () => {
  const database = await openDatabase();
  await database.transaction().execute(async (transaction) => {
    await sql`select 1`.execute(transaction);
    await expect(sql`select 1`.execute(database)).rejects.toThrow(
      'timeout exceeded when trying to connect: each of the 1 connections of this pool was in use or being made for 2000 ms',
    );
  });
  // The place of the one that gave up is free.
  expect((await sql`select 1 as one`.execute(database)).rows).toEqual([{ one: 1 }]);
});
