/**
 * A machine's clock that is set by an hour.
 *
 * It is set back or ahead, under a running service or before its start. Work is due, expires and is given up by
 * Postgres' time.
 */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import type { Database } from '@sluice/database/connection/connection';
import { beginServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { mainOf } from './fleet-under-test.ts';
import { setClock, setClockOfWorker, settingClock } from './wrong-date.ts';

const HOUR_MS = 3_600_000;
const SET_BY = [-HOUR_MS, HOUR_MS];
const WAIT = { timeout: 60_000, interval: 50 };
const TEST_TIMEOUT_MS = 300_000;
async function start(service: 'api' | 'worker', setByMs: number, isAtStart: boolean) {
  const { url, database } = await createTestDatabase();
  const process = await beginServiceUnderTest(mainOf(service), {
    DATABASE_URL: url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '1',
    NODE_OPTIONS: settingClock(setByMs, isAtStart),
    [`${service.toUpperCase()}_PORT`]: '0',
  });
  onTestFinished(() => process.kill('SIGKILL').then(() => undefined));
  const started = await process.started;
  const set = service === 'worker' ? setClockOfWorker : setClock;
  return { database, serviceUrl: started.url, setItsClock: () => set(started) };
}

/** By how many seconds the newest start of a signup is not now, by Postgres. */
async function signUp(serviceUrl: string, database: Database, email: string): Promise<number> {
  const answer = await fetch(`${serviceUrl}/v1/account_signup`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ email }),
  });
  expect(answer.status).toBeLessThan(300);
  const { rows } = await sql<{ seconds: number }>`
    select abs(extract(epoch from clock_timestamp() - started_at))::float8 as seconds
      from signups where email = ${email}`.execute(database);
  return rows[0]?.seconds ?? Number.NaN;
}

test.each(SET_BY)(
  'an API process starts a signup at Postgres’ time, whether its clock is set by %i ms later or was before its start',
  async (setByMs) => {
    const later = await start('api', setByMs, false);
    expect(await signUp(later.serviceUrl, later.database, 'before@example.com')).toBeLessThan(60);
    await later.setItsClock();
    expect(await signUp(later.serviceUrl, later.database, 'after@example.com')).toBeLessThan(60);

    const before = await start('api', setByMs, true);
    expect(await signUp(before.serviceUrl, before.database, 'first@example.com')).toBeLessThan(60);
  },
  TEST_TIMEOUT_MS,
);

/** Of the newest row, by how many seconds each of these times is not now, by Postgres. */
async function secondsFromNow(database: Database, table: string, columns: readonly string[]) {
  const offBy = columns.map(
    (column) => sql`abs(extract(epoch from clock_timestamp() - ${sql.ref(column)}))::float8`,
  );
  const { rows } = await sql<{ seconds: number[] }>`
    select array[${sql.join(offBy)}] as seconds from ${sql.table(table)}
     order by ${sql.ref(columns[0] ?? '')} desc limit 1`.execute(database);
  return Math.max(...(rows[0]?.seconds ?? [Number.NaN]));
}

// With its clock ahead it sent early entries that wait for a retry; with its clock behind it left a dead process' entry
// for an hour.
test.each(SET_BY)(
  'an API process whose clock is set by %i ms keeps the times of its outbox and of its answers by key',
  async (setByMs) => {
    const { database, serviceUrl, setItsClock } = await start('api', setByMs, false);
    const signUpOnce = async (email: string, key: string) => {
      const answer = await fetch(`${serviceUrl}/v1/account_signup`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
        body: JSON.stringify({ email }),
      });
      expect(answer.status).toBeLessThan(300);
      return { text: await answer.text(), replayed: answer.headers.get('idempotent-replayed') };
    };
    const first = await signUpOnce('one@example.com', 'one');
    await setItsClock();
    expect(await signUpOnce('one@example.com', 'one')).toEqual({ ...first, replayed: 'true' });
    await signUpOnce('two@example.com', 'two');
    expect(await secondsFromNow(database, 'idempotency_keys', ['started_at'])).toBeLessThan(60);
    expect(await secondsFromNow(database, 'outbox', ['created_at'])).toBeLessThan(60);

    // An answer is kept for seven days, and a call whose process died holds its key for a minute.
    await sql`
      update idempotency_keys
         set answer = null, outcome = null, locked_until = clock_timestamp() + interval '30 minutes'`.execute(
      database,
    );
    const asked = (key: string, email: string) =>
      fetch(`${serviceUrl}/v1/account_signup`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
        body: JSON.stringify({ email }),
      }).then(({ status }) => status);
    expect(await asked('one', 'one@example.com')).toBe(409);
    await sql`update idempotency_keys set locked_until = clock_timestamp() - interval '1 second'`.execute(
      database,
    );
    expect(await asked('one', 'one@example.com')).toBeLessThan(300);

    // There is no such signup, so sending these has no effect.
    await sql`
      insert into outbox (topic, dedupe_key, payload, created_at, attempt, next_attempt_at)
      select 'signup.mail', key, '{"signup_id": 0}', clock_timestamp(), 1, clock_timestamp() + due_in
        from (values ('of a dead process', interval '1 second'), ('waits', interval '30 minutes')) as given (key, due_in)`.execute(
      database,
    );
    const waiting = async () => {
      const { rows } = await sql<{ key: string }>`
        select dedupe_key as key from outbox where next_attempt_at is not null order by 1`.execute(
        database,
      );
      return rows.map(({ key }) => key);
    };
    await vi.waitFor(async () => expect(await waiting()).toEqual(['waits']), WAIT);
  },
  TEST_TIMEOUT_MS,
);

// With its clock ahead it gave up files that were on their way; with its clock behind it gave up no file.
test.each(SET_BY)(
  'a worker whose clock is set by %i ms gives up an upload after an hour of silence, not one that goes on',
  async (setByMs) => {
    const { database, setItsClock } = await start('worker', setByMs, false);
    await setItsClock();
    await insertTestWorkspace(database, 1);
    await sql`
      insert into imports (environment_id, name, identifier, data_to_process, state, created_at, updated_at)
      select 1, name, 'id', 'all', 'preprocessing', clock_timestamp() - silent, clock_timestamp() - silent
        from (values ('goes on', interval '10 seconds'), ('silent', interval '61 minutes')) as given (name, silent)`.execute(
      database,
    );
    const states = async () => {
      const { rows } = await sql<{ name: string; state: string }>`
        select name, state from imports order by name`.execute(database);
      return Object.fromEntries(rows.map(({ name, state }) => [name, state]));
    };
    await vi.waitFor(async () => expect((await states())['silent']).toBe('failed'), WAIT);
    expect(await states()).toEqual({ 'goes on': 'preprocessing', silent: 'failed' });
  },
  TEST_TIMEOUT_MS,
);
