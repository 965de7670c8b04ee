/**
 * An API that dies between the commit and the answer.
 *
 * The same call, with the same `Idempotency-Key`, makes no further change and gets the answer of the first one.
 */
import { hashCode } from '../../../src/accounts/signup-code.ts';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { once } from 'node:events';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SECRET, startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertToken } from '../support/inserted-rows.ts';
import {
  insertChangeable,
  listChanging,
  prepareChange,
  requestOf,
  snapshotOf,
  waitingStatusOf,
} from '../support/changing-operations.ts';
import { startProcess } from '../support/process-under-test.ts';

let api: ApiUnderTest;
let owned: Readonly<Record<string, string>>;

beforeAll(async () => {
  api = await startApi();
  await sql`
    create function die() returns trigger language plpgsql as
      $$begin raise exception 'the process has died'; end$$`.execute(api.database);
  await sql`
    create trigger die_before_keeping before update on idempotency_keys
      for each row when (new.answer is not null) execute function die()`.execute(api.database);
  await sql`
    create trigger die_before_releasing before delete on idempotency_keys
      for each row execute function die()`.execute(api.database);
  await setDying(false);
  owned = await insertChangeable(api);
});
afterAll(() => api.close());

const setDying = (isDying: boolean) =>
  sql`alter table idempotency_keys ${sql.raw(isDying ? 'enable' : 'disable')} trigger user`.execute(
    api.database,
  );

/** The answer is made, and neither kept nor its key released. */
async function dyingBeforeItsAnswer<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  await setDying(true);
  try {
    return await call();
  } finally {
    await setDying(false);
  }
}

/** Sent twice, these have the effect of one call. */
const REPEATABLE = [
  '/v1/reporting_webhooks/{webhook_id}/probe',
  '/v1/reporting_webhooks/{webhook_id}/replays/{replay_id}/cancel',
  '/v1/account_signup/startup_application',
  '/v1/applications/{application_id}/replays',
];
/** Four snapshots of the database an operation, on a machine that others use too. */
const EVERY_OPERATION_TIMEOUT_MS = 240_000;

test(
  'I38: a POST or PUT that died after its change repeats without a second change',
  async () => {
    const operations = listChanging(api).filter(({ method }) => method !== 'DELETE');
    expect(operations.length).toBeGreaterThan(30);
    let changed = 0;
    for (const [index, operation] of operations.entries()) {
      await prepareChange(api, operation);
      const headers = { 'idempotency-key': `died-${index}` };
      const call = () => api.app.inject(requestOf(api, operation, owned, headers));
      const before = await snapshotOf(api);
      const first = await dyingBeforeItsAnswer(call);
      const after = await snapshotOf(api);
      const shown = `${operation.method} ${operation.path}: ${first.body}`;
      const waitingStatus = waitingStatusOf(operation);
      if (waitingStatus === undefined) expect(first.statusCode, shown).toBeLessThan(300);
      else expect(first.statusCode, shown).toBe(waitingStatus);
      if (after === before) continue;
      changed += 1;
      // Times would differ, and so would drawn and counted values.
      api.clock.nowMs += 1_000;
      const isRepeatable = REPEATABLE.includes(operation.path);
      // No answer is kept for a call that only sets a state; the lock runs out, and the call runs again.
      if (isRepeatable) api.clock.nowMs += 60_000;
      const again = await call();
      expect(again.statusCode, `${shown} ${again.body}`).toBe(first.statusCode);
      if (first.statusCode < 300 && !isRepeatable) expect(again.body).toBe(first.body);
      expect((await snapshotOf(api)) === after, shown).toBe(true);
    }
    expect(changed).toBeGreaterThan(25);
  },
  EVERY_OPERATION_TIMEOUT_MS,
);

test('a change of a webhook that is refused is refused again after the API died before its answer', async () => {
  const { key } = api.a;
  const made = await api.call('POST', '/v1/reporting_webhooks', {
    key,
    body: {
      name: 'hook',
      endpoint: 'https://one.example.com/',
      events: ['*'],
      headers: { 'x-key': 'secret' },
    },
  });
  expect(made.statusCode, made.body).toBe(200);
  const change = () =>
    api.call('PUT', `/v1/reporting_webhooks/${made.json().id}`, {
      key,
      headers: { 'idempotency-key': 'refused-change' },
      body: { endpoint: 'https://other.example.com/' },
    });
  const first = await dyingBeforeItsAnswer(change);
  expect(first.json(), first.body).toMatchObject({ errors: [{ field: 'headers' }] });
  api.clock.nowMs += 60_000;
  const again = await change();
  expect(again.statusCode, again.body).toBe(first.statusCode);
});

test('a signup that died after its account was made shows the token of that account', async () => {
  const email = 'new@example.com';
  const { rows } = await sql<{ signupId: string }>`
    insert into signups (email, ip, started_at, code_expires_at)
    values (${email}, '', now(), ${new Date(api.clock.nowMs + 60_000)})
    returning signup_id as "signupId"`.execute(api.database);
  const { signupId } = rows[0]!;
  await sql`
    update signups set code_hmac = ${hashCode(SECRET, 'signup code', signupId, email, '123456')}
     where signup_id = ${signupId}`.execute(api.database);
  const complete = () =>
    api.call('POST', '/v1/account_signup/code', {
      headers: { 'idempotency-key': 'signup' },
      body: {
        email,
        code: '123456',
        company_name: 'New',
        first_name: 'N',
        last_name: 'N',
        data_center: 'us',
      },
    });
  const first = await dyingBeforeItsAnswer(complete);
  expect(first.statusCode).toBe(200);
  const again = await complete();
  expect(again.body).toBe(first.body);
  const { account_id: accountId, token } = again.json();
  const read = await api.call('GET', `/v1/accounts/${accountId}`, { key: token });
  expect(read.statusCode).toBe(200);
});

test('a purchase is not made again by the same call once it has ended', async () => {
  const url = `/v1/accounts/${api.a.accountId}/billing/inbox_previews/invoiced_purchase`;
  await prepareChange(api, { path: '/billing/inbox_previews/invoiced_purchase' });
  const buy = () =>
    api.call('POST', url, {
      key: api.a.token,
      body: { pack: 'pack_100' },
      headers: { 'idempotency-key': 'purchase' },
    });
  const first = await dyingBeforeItsAnswer(buy);
  await sql`update runs set status = 'success', finished_at = now()`.execute(api.database);
  expect((await buy()).json().run_id).toBe(first.json().run_id);
});

/** Two processes start one after the other, on a machine that others use too. */
const PROCESSES_TIMEOUT_MS = 180_000;

test(
  'a real process that is killed between commit and answer: the next one answers',
  { timeout: PROCESSES_TIMEOUT_MS },
  async () => {
    const { database, url } = await createTestDatabase();
    const token = 'sa_live_of_the_killed';
    await sql`insert into accounts (name) values ('A')`.execute(database);
    const { rows } = await sql<{ id: number }>`select account_id::int as id from accounts`.execute(
      database,
    );
    const accountId = rows[0]!.id;
    await insertToken(database, accountId, token);
    // A transaction that wants to keep an answer waits for the test.
    await sql`
    create function wait_for_the_test() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(4242); return new; end'`.execute(database);
    await sql`
    create trigger wait_for_the_test before update of answer on idempotency_keys
      for each row execute function wait_for_the_test()`.execute(database);
    const settings = { API_SECRET: 'a secret that both processes have, long enough' };
    const create = (base: string) =>
      fetch(`${base}/v1/accounts/${accountId}/api_credentials`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'idempotency-key': 'killed',
        },
        body: JSON.stringify({ name: 'made once', type: 'service_account' }),
      });

    const killed = startProcess({ url }, settings);
    const killedAt = await killed.ready();
    await database.connection().execute(async (holder) => {
      await sql`select pg_advisory_lock(4242)`.execute(holder);
      const unanswered = create(killedAt).then(
        () => 'answered',
        () => 'broken off',
      );
      const waiting = () =>
        sql<{ pid: number }>`
      select pid from pg_locks
       where locktype = 'advisory' and not granted
         and database = (select oid from pg_database where datname = current_database())`.execute(
          database,
        );
      await expect.poll(async () => (await waiting()).rows.length, { timeout: 30_000 }).toBe(1);
      killed.child.kill('SIGKILL');
      await once(killed.child, 'exit');
      expect(await unanswered).toBe('broken off');
      // The server would end the statement of a client that is gone; with it the answer would be kept.
      const { pid } = (await waiting()).rows[0]!;
      await sql`select pg_terminate_backend(${pid}::int, 10000)`.execute(database);
      await sql`select pg_advisory_unlock(4242)`.execute(holder);
    });

    const made = () =>
      sql<{ hash: Buffer }>`
    select secret_hash as hash from api_credentials where name = 'made once'`.execute(database);
    expect((await made()).rows).toHaveLength(1);
    const answer = await create(await startProcess({ url }, settings).ready());
    expect(answer.status).toBe(200);
    const { secret } = (await answer.json()) as { secret: string };
    const { rows: credentials } = await made();
    expect(credentials).toHaveLength(1);
    expect(hashSecret(secret).equals(credentials[0]!.hash)).toBe(true);
  },
);
