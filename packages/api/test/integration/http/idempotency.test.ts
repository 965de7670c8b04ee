/** `Idempotency-Key`: the same call again gets the first answer and has no further effect. */
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertToken } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
let path: string;
beforeAll(async () => {
  api = await startApi();
  path = `/v1/accounts/${api.a.accountId}/api_credentials`;
});
afterAll(() => api.close());

let keyCount = 0;
const newKey = (): string => `key-${++keyCount}`;
const TOKEN = { name: 'a', type: 'service_account' };

const create = (idempotencyKey: string, body: object = TOKEN, key = api.a.token) =>
  api.call('POST', path, { key, body, headers: { 'idempotency-key': idempotencyKey } });

async function credentialCount(): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from api_credentials where account_id = ${api.a.accountId}`.execute(
    api.database,
  );
  return rows[0]!.count;
}

test('I38: a repeated call gets the same answer byte for byte, secret included, and makes no second credential', async () => {
  const key = newKey();
  const before = await credentialCount();
  const first = await create(key);
  expect(first.statusCode).toBe(200);
  expect(first.headers['idempotent-replayed']).toBeUndefined();
  const again = await create(key);
  expect(again.statusCode).toBe(200);
  expect(again.body).toBe(first.body);
  expect(again.headers['content-type']).toBe(first.headers['content-type']);
  expect(again.headers['idempotent-replayed']).toBe('true');
  expect(await credentialCount()).toBe(before + 1);
});

test('I38: concurrent calls have one effect, and each gets the same answer or 409 with Retry-After', async () => {
  const key = newKey();
  const before = await credentialCount();
  const answers = await Promise.all(Array.from({ length: 30 }, () => create(key)));
  expect(await credentialCount()).toBe(before + 1);
  const done = answers.filter(({ statusCode }) => statusCode === 200);
  expect(new Set(done.map(({ body }) => body)).size).toBe(1);
  for (const answer of answers.filter(({ statusCode }) => statusCode !== 200)) {
    expectProblem(answer, 409, 'idempotency_key_in_use');
    expect(answer.headers['retry-after']).toBe('1');
  }
});

test('I38: a concurrent call that gets the answer of another call is marked as replayed', async () => {
  const key = newKey();
  // So that its row is the one begun last.
  api.clock.nowMs += 1;
  const first = await create(key);
  expect(first.headers['idempotent-replayed']).toBeUndefined();
  // As between the commit of the change and the keeping of its answer, which comes while the second call runs.
  await sql`
    create table kept_meanwhile as select * from idempotency_keys
     where started_at = (select max(started_at) from idempotency_keys)`.execute(api.database);
  await sql`
    update idempotency_keys set answer = null
     where (principal, key_hash) in (select principal, key_hash from kept_meanwhile)`.execute(
    api.database,
  );
  await sql`
    create function keep_meanwhile() returns trigger language plpgsql security definer as $$
    begin select answer into new.answer from kept_meanwhile; return new; end $$`.execute(
    api.database,
  );
  await sql`
    create trigger keep_meanwhile before update of answer on idempotency_keys
       for each row when (new.answer is not null) execute function keep_meanwhile()`.execute(
    api.database,
  );
  const second = await create(key);
  await sql`drop trigger keep_meanwhile on idempotency_keys`.execute(api.database);
  expect(second.body).toBe(first.body);
  expect(second.headers['idempotent-replayed']).toBe('true');
});

test('I38: another body under the same key is 422 and makes no credential', async () => {
  const key = newKey();
  await create(key);
  const before = await credentialCount();
  expectProblem(await create(key, { ...TOKEN, name: 'b' }), 422, 'idempotency_key_reused');
  expect(await credentialCount()).toBe(before);
});

test('I38: another page of a search is another call, not the page before again', async () => {
  await sql`
    insert into objects (environment_id, object_number, object_type_id, object_id, attributes, created_at, updated_at)
    select ${api.a.environmentId}, n, 1, 'object-' || n, '{}', now(), now() from generate_series(1, 2) n`.execute(
    api.database,
  );
  const filter = { object_attribute: { field: 'object_id', operator: 'exists' } };
  const search = (query: string, key: string) =>
    api.call('POST', `/v1/objects?limit=1${query}`, {
      body: { object_type_id: 1, filter },
      headers: { 'idempotency-key': key },
    });
  const key = newKey();
  const first = await search('', key);
  expect(first.json().ids).toEqual(['object-1']);
  expect((await search('', key)).body).toBe(first.body);
  const second = `&start=${first.json().next}`;
  expectProblem(await search(second, key), 422, 'idempotency_key_reused');
  expect((await search(second, newKey())).json().ids).toEqual(['object-2']);
});

test('the order of the members is not another body', async () => {
  const key = newKey();
  const first = await create(key);
  expect((await create(key, { type: TOKEN.type, name: TOKEN.name })).body).toBe(first.body);
});

test('I38: a key belongs to its caller, its method and its path', async () => {
  const key = newKey();
  const first = (await create(key)).json();
  const other = await create(key, TOKEN, first.secret);
  expectProblem(other, 403, 'forbidden');
  const ofB = await api.call('POST', `/v1/accounts/${api.b.accountId}/api_credentials`, {
    key: api.b.token,
    body: TOKEN,
    headers: { 'idempotency-key': key },
  });
  expect(ofB.statusCode).toBe(200);
  expect(ofB.json().secret).not.toBe(first.secret);
  const rotated = await api.call('POST', `${path}/${first.api_credential.id}/rotate`, {
    key: api.a.token,
    headers: { 'idempotency-key': key },
  });
  expect(rotated.headers['idempotent-replayed']).toBeUndefined();
  expect(rotated.json().secret).not.toBe(first.secret);
});

// Security: an access token shares the keys of the token that it came from, and may be narrower.
test('I38: an answer is not repeated to a narrower token that may not make or rotate the credential', async () => {
  const scopes = ['usage:write', 'partners:write'];
  await insertToken(api.database, api.a.accountId, 'sa_live_of_both', { scopes });
  const exchanged = await api.app.inject({
    method: 'POST',
    url: '/v1/service_accounts/oauth/token',
    payload: {
      grant_type: 'client_credentials',
      client_secret: 'sa_live_of_both',
      scope: 'partners:write',
    },
  });
  const narrower = exchanged.json().access_token;
  const body = { ...TOKEN, scopes: ['usage:write'] };
  const key = newKey();
  const made = await create(key, body, 'sa_live_of_both');
  expect(made.statusCode).toBe(200);
  expectProblem(await create(key, body, narrower), 403, 'forbidden');
  expect((await create(key, body, 'sa_live_of_both')).body).toBe(made.body);

  const rotate = (token: string) =>
    api.call('POST', `${path}/${made.json().api_credential.id}/rotate`, {
      key: token,
      headers: { 'idempotency-key': key },
    });
  const rotated = await rotate('sa_live_of_both');
  expect(rotated.statusCode).toBe(200);
  expectProblem(await rotate(narrower), 403, 'forbidden');
  expect((await rotate('sa_live_of_both')).body).toBe(rotated.body);
});

// Security: a mailed code has six digits, and guesses at one must be counted.
test('I38: callers without credentials do not share a key, and another body counts as a new key', async () => {
  const start = (email: string) =>
    api.app.inject({
      method: 'POST',
      url: '/v1/account_signup',
      headers: { 'idempotency-key': 'signup' },
      payload: { email },
    });
  expect((await start('one@example.com')).statusCode).toBe(200);
  const other = await start('other@example.com');
  expect(other.statusCode).toBe(200);
  expect(other.headers['idempotent-replayed']).toBeUndefined();
  expect((await start('one@example.com')).headers['idempotent-replayed']).toBe('true');
});

test('I38: a refused call is not kept, and a corrected call runs under the same key', async () => {
  const key = newKey();
  const refused = await create(key, { name: 'a', type: 'app', environment_id: 2_000_000_000 });
  expectProblem(refused, 422, 'validation_failed');
  expect((await create(key)).statusCode).toBe(200);
});

test('I38: a call that fails before its change is not kept, and runs later under the same key', async () => {
  const key = newKey();
  await sql`alter table audit_chains rename to audit_chains_away`.execute(api.database);
  const failed = await api.app.inject({
    method: 'POST',
    url: path,
    headers: { authorization: `Bearer ${api.a.token}`, 'idempotency-key': key },
    payload: TOKEN,
  });
  await sql`alter table audit_chains_away rename to audit_chains`.execute(api.database);
  expect(failed.statusCode).toBeGreaterThanOrEqual(500);
  const before = await credentialCount();
  const done = await create(key);
  expect(done.statusCode).toBe(200);
  expect(done.headers['idempotent-replayed']).toBeUndefined();
  expect(await credentialCount()).toBe(before + 1);
});

test('an answer without a body is sent again without one', async () => {
  const key = newKey();
  const enable = () =>
    api.call('POST', `/v1/accounts/${api.a.accountId}/2fa_required/enable`, {
      key: api.a.token,
      headers: { 'idempotency-key': key },
    });
  const first = await enable();
  const again = await enable();
  expect({ status: again.statusCode, body: again.body }).toEqual({ status: 204, body: '' });
  for (const name of ['content-type', 'content-length'])
    expect(again.headers[name]).toBe(first.headers[name]);
  expect(again.headers['idempotent-replayed']).toBe('true');
});

test('also on a PUT, and on routes of the app API', async () => {
  const key = newKey();
  const rename = () =>
    api.call('PUT', `/v1/accounts/${api.a.accountId}`, {
      key: api.a.token,
      body: { account: { name: 'Renamed' } },
      headers: { 'idempotency-key': key },
    });
  const first = await rename();
  api.clock.nowMs += 5_000;
  expect((await rename()).body).toBe(first.body);

  const webhook = { name: 'a', endpoint: 'https://a.example', events: ['email_sent'] };
  const make = () =>
    api.call('POST', '/v1/reporting_webhooks', {
      body: webhook,
      headers: { 'idempotency-key': key },
    });
  const made = await make();
  expect((await make()).json().id).toBe(made.json().id);
  expect((await api.call('GET', '/v1/reporting_webhooks')).json().reporting_webhooks).toHaveLength(
    1,
  );
});

test('a call whose process died before its change is taken over after a minute, and not before', async () => {
  const key = newKey();
  const first = await create(key);
  await sql`
    update idempotency_keys set answer = null, outcome = null
     where started_at = (select max(started_at) from idempotency_keys)`.execute(api.database);
  api.clock.nowMs += 59_999;
  expectProblem(await create(key), 409, 'idempotency_key_in_use');
  api.clock.nowMs += 1;
  const taken = await create(key);
  expect(taken.statusCode).toBe(200);
  expect(taken.json().api_credential.id).not.toBe(first.json().api_credential.id);
});

test('after seven days a key is a new one', async () => {
  const key = newKey();
  const first = await create(key);
  api.clock.nowMs += 7 * 86_400_000 + 1;
  const later = await create(key, { ...TOKEN, name: 'later' });
  expect(later.statusCode).toBe(200);
  expect(later.body).not.toBe(first.body);
});

// Security: answers hold secrets that are shown once.
test('neither the key, the answer nor the outcome can be read in the database', async () => {
  const key = `unguessable-${newKey()}`;
  const { secret } = (await create(key)).json();
  const { rows } = await sql<{ row: Record<string, unknown> }>`
    select to_jsonb(k) || jsonb_build_object('texts', encode(answer, 'escape') || encode(outcome, 'escape')) as row
      from idempotency_keys k`.execute(api.database);
  expect(rows.length).toBeGreaterThan(0);
  const texts = JSON.stringify(rows);
  expect(texts).not.toContain(key);
  expect(texts).not.toContain(secret);
});

describe('the header', () => {
  test.each([[''], [' '], ['a b'], ['x'.repeat(256)], ['é']])('%j is 400', async (key) => {
    const { errors } = expectProblem(await create(key), 400, 'invalid_request');
    expect(errors).toMatchObject([
      {
        field: 'Idempotency-Key',
        reason: 'invalid',
        message: 'Idempotency-Key must be 1 to 255 visible ASCII characters',
        source: { parameter: 'Idempotency-Key' },
      },
    ]);
  });

  test('is ignored on a GET', async () => {
    const answer = await api.call('GET', path, {
      key: api.a.token,
      headers: { 'idempotency-key': 'a b' },
    });
    expect(answer.statusCode).toBe(200);
  });
});
