/**
 * A machine's clock that is set by an hour, back or ahead, under a running service or before its start: what is due,
 * expires or is given up goes by Postgres' time.
 */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import type { Database } from '@sluice/database/connection/connection';
import { beginServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { mainOf } from './fleet-under-test.ts';

const HOUR_MS = 3_600_000;
const SET_BY = [-HOUR_MS, HOUR_MS];
const WAIT = { timeout: 30_000, interval: 50 };
const TEST_TIMEOUT_MS = 60_000;
const SET_SIGNAL = 'SIGUSR2';
const SET_LINE = 'the clock was set';

/** Run before the service: its `Date` is wrong from the start, or once it is told. */
const settingClock = (setByMs: number, isAtStart: boolean) => `
  const right = Date;
  let aheadMs = ${isAtStart ? setByMs : 0};
  globalThis.Date = class extends right {
    constructor(...given) { given.length === 0 ? super(right.now() + aheadMs) : super(...given); }
    static now() { return right.now() + aheadMs; }
  };
  process.once('${SET_SIGNAL}', () => {
    aheadMs = ${setByMs};
    process.stdout.write(JSON.stringify({ msg: '${SET_LINE}' }) + '\\n');
  });`;

async function start(service: 'api' | 'worker', setByMs: number, isAtStart: boolean) {
  const { url, database } = await createTestDatabase();
  const process = await beginServiceUnderTest(mainOf(service), {
    DATABASE_URL: url,
    REDIS_URL: testRedisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    SHARD_COUNT: '1',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(settingClock(setByMs, isAtStart))}`,
    [`${service.toUpperCase()}_PORT`]: '0',
  });
  onTestFinished(() => process.kill('SIGKILL').then(() => undefined));
  const { url: serviceUrl } = await process.started;
  const setClock = async () => {
    void process.kill(SET_SIGNAL);
    await vi.waitFor(
      () => expect(process.logs).toContainEqual(expect.objectContaining({ msg: SET_LINE })),
      WAIT,
    );
  };
  return { database, serviceUrl, setClock };
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
    await later.setClock();
    expect(await signUp(later.serviceUrl, later.database, 'after@example.com')).toBeLessThan(60);

    const before = await start('api', setByMs, true);
    expect(await signUp(before.serviceUrl, before.database, 'first@example.com')).toBeLessThan(60);
  },
  TEST_TIMEOUT_MS,
);

// With its clock ahead it gave up files that were on their way, with its clock behind none.
test.each(SET_BY)(
  'a worker whose clock is set by %i ms gives up an upload after an hour of silence, not one that goes on',
  async (setByMs) => {
    const { database, setClock } = await start('worker', setByMs, false);
    await setClock();
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
