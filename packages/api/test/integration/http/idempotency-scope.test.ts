/**
 * Security: whose an `Idempotency-Key` is. A kept answer may hold a secret, so it reaches its own caller alone.
 *
 * Two callers with the same key, route and body each get an effect and an answer of their own.
 */
import { createDecipheriv } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertKey, insertToken, type Tenant } from '../support/inserted-rows.ts';
import { cookieOf, ORIGIN, startConsole, type ConsoleWorld } from '../support/console-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const WEBHOOK = { name: 'same', endpoint: 'https://example.com/a', events: ['email_sent'] };
const TOKEN = { name: 'same', type: 'service_account' };
/** Common to all callers of a test. */
let key: string;
let keyCount = 0;
const takeKey = (): void => void (key = `common-${++keyCount}`);

/** @returns the id of the webhook, with a mark if the answer is a repeated one. */
const makeWebhook = async (call: (headers: Record<string, string>) => Promise<Answer>) => {
  const answer = await call({ 'idempotency-key': key });
  expect(answer.statusCode, answer.body).toBe(200);
  return { id: answer.json().id as number, isRepeated: isRepeated(answer) };
};

type Answer = Awaited<ReturnType<ConsoleWorld['call']>>;
const isRepeated = ({ headers }: Answer): boolean => headers['idempotent-replayed'] === 'true';

const inSession = (cookie: string, workspace: number) =>
  makeWebhook((headers) =>
    world.call('POST', '/v1/reporting_webhooks', {
      cookie,
      workspace,
      headers: { ...headers, origin: ORIGIN },
      body: WEBHOOK,
    }),
  );

const signInUser = async (tenant: Tenant): Promise<string> =>
  world.signIn((await world.insertUser(tenant, 'account_admin')).email);

async function signInToken(token: string): Promise<string> {
  const answer = await world.call('POST', '/console/session', { body: { token } });
  expect(answer.statusCode).toBe(204);
  return cookieOf(answer);
}

/** A further workspace of account A, which the user may open. */
async function addWorkspace(userId: number): Promise<number> {
  const { rows } = await sql<{ environmentId: number }>`
    with made as (
      insert into environments (account_id, name, webhook_signing_key)
      values (${world.api.a.accountId}, 'second', 'signing key') returning account_id, environment_id)
    insert into memberships (account_id, user_id, environment_id)
    select account_id, ${userId}, environment_id from made
    returning environment_id as "environmentId"`.execute(world.api.database);
  return rows[0]!.environmentId;
}

/** Each call has an effect of its own, and once more it gets the answer to that. */
async function expectOwnKeys(
  calls: readonly (() => Promise<{ id: number; isRepeated: boolean }>)[],
): Promise<void> {
  const made: number[] = [];
  for (const call of calls) {
    const { id, isRepeated: isAnotherCalls } = await call();
    expect(isAnotherCalls).toBe(false);
    made.push(id);
  }
  expect(new Set(made).size).toBe(calls.length);
  for (const [index, call] of calls.entries())
    expect(await call()).toEqual({ id: made[index], isRepeated: true });
}

test('I38: each user has keys of their own, in one account and in two', async () => {
  const { a, b } = world.api;
  const [one, other, stranger] = [await signInUser(a), await signInUser(a), await signInUser(b)];
  takeKey();
  await expectOwnKeys([
    () => inSession(one, a.environmentId),
    () => inSession(other, a.environmentId),
    () => inSession(stranger, b.environmentId),
  ]);
});

test('I38: a user has keys of their own in each workspace', async () => {
  const { environmentId } = world.api.a;
  const { email, userId } = await world.insertUser(world.api.a, 'account_admin');
  const cookie = await world.signIn(email);
  const second = await addWorkspace(userId);
  takeKey();
  await expectOwnKeys([() => inSession(cookie, environmentId), () => inSession(cookie, second)]);
});

test('I38: sessions of two tokens have keys of their own, and two sessions of one token share them', async () => {
  const { a, database } = world.api;
  await insertToken(database, a.accountId, 'sa_live_of_another');
  const one = await signInToken(a.token);
  const other = await signInToken('sa_live_of_another');
  takeKey();
  await expectOwnKeys([
    () => inSession(one, a.environmentId),
    () => inSession(other, a.environmentId),
  ]);
  const again = await signInToken(a.token);
  expect((await inSession(again, a.environmentId)).isRepeated).toBe(true);
});

test('I38: each key of a workspace has idempotency keys of its own', async () => {
  const { a, database } = world.api;
  await insertKey(database, a.environmentId, 'app', 'another_key_of_a');
  const by = (appKey: string) => () =>
    makeWebhook((headers) =>
      world.api.call('POST', '/v1/reporting_webhooks', { key: appKey, headers, body: WEBHOOK }),
    );
  takeKey();
  await expectOwnKeys([by(a.key), by('another_key_of_a'), by(world.api.b.key)]);
});

test('I38: each token of an account has keys of its own, and sees no secret of another', async () => {
  const { a, database } = world.api;
  await insertToken(database, a.accountId, 'sa_live_beside');
  const make = (token: string) =>
    world.api.call('POST', `/v1/accounts/${a.accountId}/api_credentials`, {
      key: token,
      headers: { 'idempotency-key': key },
      body: TOKEN,
    });
  takeKey();
  const answers = [await make(a.token), await make('sa_live_beside')];
  expect(answers.map(isRepeated)).toEqual([false, false]);
  const [first, second] = answers.map((answer) => answer.json());
  expect(second.secret).not.toBe(first.secret);
  expect(second.api_credential.id).not.toBe(first.api_credential.id);
  expect((await make('sa_live_beside')).body).toBe(answers[1]?.body);
});

test('I38: a key is another one on each path of a route', async () => {
  const { a } = world.api;
  const made = [];
  for (const name of ['one', 'other']) {
    const answer = await world.api.call('POST', `/v1/accounts/${a.accountId}/api_credentials`, {
      key: a.token,
      body: { ...TOKEN, name },
    });
    made.push(answer.json().api_credential.id as number);
  }
  takeKey();
  const secrets = [];
  for (const id of made) {
    const path = `/v1/accounts/${a.accountId}/api_credentials/${id}/rotate`;
    const headers = { 'idempotency-key': key };
    const rotated = await world.api.call('POST', path, { key: a.token, headers });
    expect(rotated.json()).toMatchObject({ api_credential: { id } });
    secrets.push(rotated.json().secret);
  }
  expect(new Set(secrets).size).toBe(2);
});

test('the row of a call alone does not open its answer', async () => {
  takeKey();
  const { a, database } = world.api;
  await world.api.call('POST', `/v1/accounts/${a.accountId}/api_credentials`, {
    key: a.token,
    headers: { 'idempotency-key': key },
    body: TOKEN,
  });
  const { rows } = await sql<{ keyHash: Buffer; fingerprint: Buffer; answer: Buffer }>`
    select key_hash as "keyHash", fingerprint, answer from idempotency_keys
     where answer is not null`.execute(database);
  expect(rows.length).toBeGreaterThan(0);
  for (const { keyHash, fingerprint, answer } of rows)
    for (const guess of [keyHash, fingerprint]) {
      // The form of an answer: 12 bytes of nonce, 16 of tag, and the text.
      const decipher = createDecipheriv('aes-256-gcm', guess, answer.subarray(0, 12));
      decipher.setAuthTag(answer.subarray(12, 28));
      expect(() => Buffer.concat([decipher.update(answer.subarray(28)), decipher.final()])).toThrow(
        /unable to authenticate/,
      );
    }
});
