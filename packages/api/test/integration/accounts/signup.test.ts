/** Signup with a real SMTP server, from the address to a token. */
import { claimOutbox } from '@sluice/database/changes/outbox';
import { clearSignups, createAccount, SIGNUP_TOPIC } from '@sluice/database/accounts/signups';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { whileNothingIsAudited } from '../support/changing-operations.ts';
import { completion, otherThan, startSignups, type SignupWorld } from '../support/signup-world.ts';

let world: SignupWorld;
beforeAll(async () => {
  world = await startSignups();
});
afterAll(() => world.close());

describe('an address to an account', () => {
  test('the mailed code makes account, workspace, owner, service account and a token that works', async () => {
    const email = world.newAddress();
    const code = await world.startedCode(email);
    expect(code).toMatch(/^\d{6}$/);
    const answer = await world.complete(email, code);
    expect(answer.statusCode).toBe(200);
    const made = answer.json();
    expect(made).toMatchObject({
      token_hint: made.token.slice(-4),
      role: 'account_admin',
      expires_at: null,
      data_center: 'eu',
    });
    expect(made.token).toMatch(/^sa_live_/);

    const read = (path: string) => world.api.call('GET', path, { key: made.token });
    const { account } = (await read(`/v1/accounts/${made.account_id}`)).json();
    expect(account).toMatchObject({
      name: 'Acme',
      data_center: 'eu',
      sandbox: false,
      owner_user_id: made.user_id,
      billing_email: email,
      environments: [{ id: made.environment_id, name: 'Acme', deleted_at: null }],
    });
    const { users } = (await read(`/v1/accounts/${made.account_id}/all_users`)).json();
    expect(users).toMatchObject([
      { id: made.user_id, email, role: 'account_admin', environment_ids: [made.environment_id] },
    ]);
    const credential = await read(
      `/v1/accounts/${made.account_id}/api_credentials/${made.token_id}`,
    );
    expect(credential.json().api_credential).toMatchObject({
      type: 'service_account',
      service_account_id: made.service_account_id,
      created_by_user_id: made.user_id,
    });
    const { rows } = await sql<{ objectType: string }>`
      select object_type as "objectType" from audit_logs
       where account_id = ${made.account_id} and action = 'created' order by audit_log_id`.execute(
      world.api.database,
    );
    expect(rows.map(({ objectType }) => objectType)).toEqual([
      'account',
      'environment',
      'user',
      'service_account',
      'api_credential',
    ]);
  });

  test('I37: a signup is undone if its audit entries cannot be written, and its code stays valid', async () => {
    const email = world.newAddress();
    const code = await world.startedCode(email);
    const refused = await whileNothingIsAudited(world.api, () => world.complete(email, code));
    expect(refused.statusCode).toBe(500);
    const { rows } = await sql`select from users where lower(email) = ${email}`.execute(
      world.api.database,
    );
    expect(rows).toEqual([]);
    expect((await world.complete(email, code)).statusCode).toBe(200);
  });

  test('I36: neither the code nor the token is kept anywhere', async () => {
    const email = world.newAddress();
    const code = await world.startedCode(email);
    const { token } = (await world.complete(email, code)).json();
    for (const table of [
      'signups',
      'outbox',
      'audit_logs',
      'api_credentials',
      'idempotency_keys',
    ]) {
      const { rows } = await sql<{ row: unknown }>`
        select to_jsonb(t) as row from ${sql.table(table)} t`.execute(world.api.database);
      const texts = JSON.stringify(rows);
      expect(texts).not.toContain(token);
      expect(texts).not.toContain(`"${code}"`);
    }
  });

  test('a collision with another value than the address is an error, and the code stays valid', async () => {
    const { api } = world;
    const email = world.newAddress();
    await world.startedCode(email);
    const { rows } = await sql<{ id: string }>`
      select signup_id as id from signups order by signup_id desc limit 1`.execute(api.database);
    const given = {
      signupId: rows[0]!.id,
      email,
      companyName: 'Acme',
      firstName: 'Ada',
      lastName: 'Lovelace',
      dataCenter: 'eu',
      currency: 'usd',
      isSandbox: false,
      token: { text: api.a.token, hash: hashSecret(api.a.token), hint: 'here' },
      tokenScopes: [],
      webhookSigningKey: 'key',
    } as const;
    await expect(createAccount(api.database, given, {}, api.clock.nowMs)).rejects.toThrow(
      /api_credentials/,
    );
    expect((await world.complete(email, await world.mailedCode(email))).statusCode).toBe(200);
  });

  test('a mail that the server refuses is sent again, with a code that is good', async () => {
    const email = world.newAddress();
    await world.start(email);
    world.refusal.next = new Error('try later');
    await world.relay();
    expect(world.failures).toHaveLength(1);
    expect(world.mails.some(({ to }) => to === email)).toBe(false);
    world.api.clock.nowMs += 5_000;
    expect((await world.complete(email, await world.mailedCode(email))).statusCode).toBe(200);
  });
});

test('a mail to a slow server is sent once, even if another process looks for mails', async () => {
  const email = world.newAddress();
  await world.start(email);
  const { promise, resolve } = Promise.withResolvers<void>();
  world.delay.until = promise;
  const slow = world.relay();
  const ofEmail = () => world.mails.filter(({ to }) => to === email);
  await vi.waitFor(() => expect(ofEmail()).toHaveLength(1), 30_000);
  world.api.clock.nowMs += 30_000;
  expect(await world.relay()).toBe(0);
  resolve();
  expect(await slow).toBe(1);
  expect(ofEmail()).toHaveLength(1);
});

test('of a process that dies while it mails another one mails again', async () => {
  const email = world.newAddress();
  await world.start(email);
  const died = await claimOutbox(world.api.database, [SIGNUP_TOPIC], 1, world.api.clock.nowMs);
  expect(died).toHaveLength(1);
  world.api.clock.nowMs += 60_000;
  expect((await world.complete(email, await world.mailedCode(email))).statusCode).toBe(200);
});

test('clearing removes an old signup with its mail and keeps a recent one', async () => {
  const { api } = world;
  const [old, recent] = [world.newAddress(), world.newAddress()];
  await world.startedCode(old);
  const startedAtMs = api.clock.nowMs;
  api.clock.nowMs += 60_000;
  const code = await world.startedCode(recent);
  const count = async (table: 'signups' | 'outbox'): Promise<number> => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from ${sql.table(table)}`.execute(api.database);
    return rows[0]!.count;
  };
  await clearSignups(api.database, startedAtMs + 1, 1_000);
  expect([await count('signups'), await count('outbox')]).toEqual([1, 1]);
  expect((await world.complete(recent, code)).statusCode).toBe(200);
});

describe('an address that is known', () => {
  test('gets the answer of an unknown address, and its owner gets a mail about the existing account', async () => {
    const email = world.newAddress();
    await world.complete(email, await world.startedCode(email));
    const known = await world.start(email.toUpperCase().replace('EXAMPLE.COM', 'example.com'));
    const unknown = await world.start(world.newAddress());
    expect(known.statusCode).toBe(200);
    expect(known.body).toBe(unknown.body);
    expect(known.json()).toEqual({ message: 'check your email', expires_in: 600 });
    const count = world.mails.length;
    await world.relay();
    const told = world.mails.slice(count).find(({ to }) => to.toLowerCase() === email);
    expect(told?.text).toContain('already have an account');
    expect(told?.text).not.toMatch(/\b\d{6}\b(?=\s*$)/m);
  });

  // Security: a row that is written for unknown addresses alone shows the others by the time of the answer.
  test('costs a wrong code the write of an unknown address', async () => {
    const known = world.newAddress();
    await world.complete(known, await world.startedCode(known));
    const { rows: before } = await sql<{ latest: string }>`
      select max(signup_id)::text as latest from signups`.execute(world.api.database);
    for (const email of [known, world.newAddress()]) {
      const code = await world.startedCode(email);
      expectProblem(await world.complete(email, otherThan(code)), 422, 'invalid_code');
      const { rows } = await sql<{ tries: number }>`
        select attempt_count as tries from signups
         where email = ${email} and signup_id > ${before[0]!.latest}`.execute(world.api.database);
      expect(rows).toEqual([{ tries: 1 }]);
    }
  });

  test('only the right code hears that it is taken', async () => {
    const email = world.newAddress();
    const code = await world.startedCode(email);
    await sql`
      insert into users (account_id, email, first_name, last_name, role, status)
      values (${world.api.a.accountId}, ${email}, 'E', 'F', 'member', 'active')`.execute(
      world.api.database,
    );
    expectProblem(await world.complete(email, otherThan(code)), 422, 'invalid_code');
    expectProblem(await world.complete(email, code), 409, 'email_taken');
  });

  test('has three codes an hour, and the fourth start is answered the same', async () => {
    const email = world.newAddress();
    const bodies = [];
    for (let starts = 0; starts < 5; starts += 1) bodies.push((await world.start(email)).body);
    expect(new Set(bodies).size).toBe(1);
    await world.relay();
    expect(world.mails.filter(({ to }) => to === email)).toHaveLength(3);
  });
});

describe('input', () => {
  test.each([
    ['a@b.example\r\nBcc: c@d.example'],
    ['a@b.example,c@d.example'],
    ['"a b"@c.example'],
    ['A <a@b.example>'],
    ['nobody'],
    [''],
    [1],
    [`${'a'.repeat(250)}@b.example`],
    ['a\0@b.example'],
  ])('the address %j is 422', async (email) => {
    const answer = await world.post('/v1/account_signup', { email });
    expect(expectProblem(answer, 422, 'validation_failed').errors[0]?.field).toBe('email');
  });

  test.each([
    [{ code: '12345' }, 'code'],
    [{ code: '١٢٣٤٥٦' }, 'code'],
    [{ code: 123456 }, 'code'],
    [{ company_name: '' }, 'company_name'],
    [{ first_name: 'x'.repeat(101) }, 'first_name'],
    [{ data_center: 'mars' }, 'data_center'],
    [{ terms_accepted: false }, 'terms_accepted'],
    [{ role: 'staff' }, 'role'],
  ])('%j is 422 and names the field', async (change, field) => {
    const body = { ...completion(world.newAddress(), '123456'), ...change };
    const answer = await world.post('/v1/account_signup/code', body);
    expect(expectProblem(answer, 422, 'validation_failed').errors[0]?.field).toBe(field);
  });
});
