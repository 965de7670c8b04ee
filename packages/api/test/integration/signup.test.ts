/** Signup, from the address to a token that works, with a real SMTP server on the way. */
import { claimOutbox, finishOutbox } from '@sluice/database/outbox';
import { findSignup, keepSignupCode } from '@sluice/database/signups';
import { sql } from 'kysely';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createMailer, type Mailer } from '../../src/mailer.ts';
import { createRelay } from '../../src/outbox-relay.ts';
import { expectProblem } from '../error-shapes.ts';
import { SECRET, startApi, type ApiUnderTest } from './api-under-test.ts';

const TEN_MINUTES_MS = 600_000;

let api: ApiUnderTest;
let server: SMTPServer;
let mailer: Mailer;
let relay: () => Promise<number>;
/** The refusal of the next mail, where there is one. */
let nextRefusal: Error | undefined;
const mails: { to: string; text: string }[] = [];
const failures: unknown[] = [];

beforeAll(async () => {
  api = await startApi();
  server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const refusal = nextRefusal;
        nextRefusal = undefined;
        if (!refusal) {
          const to = session.envelope.rcptTo.map(({ address }) => address).join(',');
          mails.push({ to, text: Buffer.concat(chunks).toString('utf8') });
        }
        done(refusal);
      });
    },
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as { port: number };
  mailer = createMailer({
    smtpUrl: `smtp://127.0.0.1:${port}`,
    directory: '/nowhere',
    from: 'Sluice <no-reply@sluice.example>',
  });
  relay = createRelay({
    claimOutbox: (...rest) => claimOutbox(api.database, ...rest),
    finishOutbox: (...rest) => finishOutbox(api.database, ...rest),
    findSignup: (...rest) => findSignup(api.database, ...rest),
    keepSignupCode: (...rest) => keepSignupCode(api.database, ...rest),
    mailer,
    analytics: undefined,
    secret: SECRET,
    now: () => api.clock.nowMs,
    onFailure: (_entry, error) => failures.push(error),
  });
});
afterAll(async () => {
  mailer.close();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  await api.close();
});

let addressCount = 0;
const newAddress = (): string => `user${++addressCount}@example.com`;
let ipCount = 0;
/** The tests share a clock's hour; each has IP addresses of its own. */
const newIp = (): string => `10.9.${Math.floor(++ipCount / 250)}.${ipCount % 250}`;

const post = (url: string, body: unknown, ip = newIp()) =>
  api.app.inject({
    method: 'POST',
    url,
    remoteAddress: ip,
    headers: { 'content-type': 'application/json' },
    payload: JSON.stringify(body),
  });
const start = (email: string, ip?: string) => post('/v1/account_signup', { email }, ip);
const completion = (email: string, code: string) => ({
  email,
  code,
  company_name: 'Acme',
  first_name: 'Ada',
  last_name: 'Lovelace',
  data_center: 'eu',
});
const complete = (email: string, code: string, ip?: string) =>
  post('/v1/account_signup/code', completion(email, code), ip);

/** The code that is mailed to the address now. */
async function mailedCode(email: string): Promise<string> {
  await relay();
  const mail = mails.findLast(({ to }) => to === email);
  return /code is (\d{6})\b/.exec(mail?.text ?? '')?.[1] ?? 'no code';
}

async function startedCode(email: string): Promise<string> {
  expect((await start(email)).statusCode).toBe(200);
  return mailedCode(email);
}

const otherThan = (code: string): string => (code === '000000' ? '000001' : '000000');

async function accountCountOf(email: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from users where email = ${email}`.execute(api.database);
  return rows[0]!.count;
}

describe('an address to an account', () => {
  test('the mailed code makes account, workspace, owner, service account and a token that works', async () => {
    const email = newAddress();
    const code = await startedCode(email);
    expect(code).toMatch(/^\d{6}$/);
    const answer = await complete(email, code);
    expect(answer.statusCode).toBe(200);
    const made = answer.json();
    expect(made).toMatchObject({
      token_hint: made.token.slice(-4),
      expires_at: null,
      data_center: 'eu',
    });
    expect(made.token).toMatch(/^sa_live_/);

    const read = (path: string) => api.call('GET', path, { key: made.token });
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
      api.database,
    );
    expect(rows.map(({ objectType }) => objectType)).toEqual([
      'account',
      'environment',
      'user',
      'service_account',
      'api_credential',
    ]);
  });

  test('neither the code nor the token is kept anywhere', async () => {
    const email = newAddress();
    const code = await startedCode(email);
    const { token } = (await complete(email, code)).json();
    for (const table of [
      'signups',
      'outbox',
      'audit_logs',
      'api_credentials',
      'idempotency_keys',
    ]) {
      const { rows } = await sql<{ row: unknown }>`
        select to_jsonb(t) as row from ${sql.table(table)} t`.execute(api.database);
      const texts = JSON.stringify(rows);
      expect(texts).not.toContain(token);
      expect(texts).not.toContain(`"${code}"`);
    }
  });

  test('a mail that the server refuses is sent again, with a code that is good', async () => {
    const email = newAddress();
    await start(email);
    nextRefusal = new Error('try later');
    await relay();
    expect(failures).toHaveLength(1);
    expect(mails.some(({ to }) => to === email)).toBe(false);
    api.clock.nowMs += 5_000;
    expect((await complete(email, await mailedCode(email))).statusCode).toBe(200);
  });
});

// Security.
describe('guessing', () => {
  test('fifty right codes at the same time make one account', async () => {
    const email = newAddress();
    const code = await startedCode(email);
    const answers = await Promise.all(Array.from({ length: 50 }, () => complete(email, code)));
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
    for (const answer of answers.filter(({ statusCode }) => statusCode !== 200))
      expectProblem(answer, 422, 'invalid_code');
    expect(await accountCountOf(email)).toBe(1);
  });

  test('wrong, expired, used, unknown and spent codes have one answer', async () => {
    const used = newAddress();
    const usedCode = await startedCode(used);
    await complete(used, usedCode);
    const wrong = newAddress();
    const wrongCode = otherThan(await startedCode(wrong));
    const expired = newAddress();
    const expiredCode = await startedCode(expired);
    const bodies = [await complete(used, usedCode), await complete(wrong, wrongCode)];
    api.clock.nowMs += TEN_MINUTES_MS;
    bodies.push(await complete(expired, expiredCode), await complete(newAddress(), '123456'));
    const shown = bodies.map((answer) => {
      const { errors, message } = expectProblem(answer, 422, 'invalid_code');
      return JSON.stringify({ errors, message });
    });
    expect(new Set(shown).size).toBe(1);
  });

  test('a code is good until ten minutes are over', async () => {
    const email = newAddress();
    const code = await startedCode(email);
    api.clock.nowMs += TEN_MINUTES_MS - 1;
    expect((await complete(email, code)).statusCode).toBe(200);
  });

  test('after five wrong tries the right one is wrong too', async () => {
    const email = newAddress();
    const code = await startedCode(email);
    for (let tries = 0; tries < 5; tries += 1)
      expectProblem(await complete(email, otherThan(code)), 422, 'invalid_code');
    expectProblem(await complete(email, code), 422, 'invalid_code');
    expect(await accountCountOf(email)).toBe(0);
  });

  test('tries at the same time are not more than five', async () => {
    const email = newAddress();
    const code = await startedCode(email);
    const guesses = Array.from({ length: 40 }, () => complete(email, otherThan(code)));
    await Promise.all(guesses);
    const { rows } = await sql<{ attempts: number }>`
      select attempt_count as attempts from signups where email = ${email}`.execute(api.database);
    expect(rows).toEqual([{ attempts: 5 }]);
    expectProblem(await complete(email, code), 422, 'invalid_code');
  });

  test('a newer code takes the place of the older one', async () => {
    const email = newAddress();
    const older = await startedCode(email);
    let newer = await startedCode(email);
    // One in a million.
    if (newer === older) newer = await startedCode(email);
    expectProblem(await complete(email, older), 422, 'invalid_code');
    expect((await complete(email, newer)).statusCode).toBe(200);
  });

  test("one address' code is not good for another", async () => {
    const [one, other] = [newAddress(), newAddress()];
    const code = await startedCode(one);
    await startedCode(other);
    const answer = await complete(other, code);
    // Unless both drew the same six digits.
    if (answer.statusCode !== 200) expectProblem(answer, 422, 'invalid_code');
    expect(await accountCountOf(one)).toBe(0);
  });

  test('an IP address tries a hundred codes an hour', async () => {
    const ip = newIp();
    for (let tries = 0; tries < 100; tries += 1) await complete(newAddress(), '000000', ip);
    const answer = await complete(newAddress(), '000000', ip);
    expectProblem(answer, 429, 'too_many_attempts');
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  });
});

describe('an address that is known', () => {
  test('is answered as an unknown one, and its owner is told by mail', async () => {
    const email = newAddress();
    await complete(email, await startedCode(email));
    const known = await start(email.toUpperCase().replace('EXAMPLE.COM', 'example.com'));
    const unknown = await start(newAddress());
    expect(known.statusCode).toBe(200);
    expect(known.body).toBe(unknown.body);
    expect(known.json()).toEqual({ message: 'check your email', expires_in: 600 });
    const count = mails.length;
    await relay();
    const told = mails.slice(count).find(({ to }) => to.toLowerCase() === email);
    expect(told?.text).toContain('already have an account');
    expect(told?.text).not.toMatch(/\b\d{6}\b(?=\s*$)/m);
  });

  test('only the right code hears that it is taken', async () => {
    const email = newAddress();
    const code = await startedCode(email);
    await sql`
      insert into users (account_id, email, first_name, last_name, role, status)
      values (${api.a.accountId}, ${email}, 'E', 'F', 'member', 'active')`.execute(api.database);
    expectProblem(await complete(email, otherThan(code)), 422, 'invalid_code');
    expectProblem(await complete(email, code), 409, 'email_taken');
  });

  test('has three codes an hour, and the fourth start is answered the same', async () => {
    const email = newAddress();
    const bodies = [];
    for (let starts = 0; starts < 5; starts += 1) bodies.push((await start(email)).body);
    expect(new Set(bodies).size).toBe(1);
    await relay();
    expect(mails.filter(({ to }) => to === email)).toHaveLength(3);
  });
});

test('an IP address starts twenty signups an hour, also at the same time', async () => {
  const ip = newIp();
  const answers = await Promise.all(Array.from({ length: 30 }, () => start(newAddress(), ip)));
  const refused = answers.filter(({ statusCode }) => statusCode !== 200);
  expect(refused).toHaveLength(10);
  for (const answer of refused) {
    expectProblem(answer, 429, 'rate_limited');
    expect(answer.headers['retry-after']).toBe('3600');
  }
  api.clock.nowMs += 3_600_000;
  expect((await start(newAddress(), ip)).statusCode).toBe(200);
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
    const answer = await post('/v1/account_signup', { email });
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
    const body = { ...completion(newAddress(), '123456'), ...change };
    const answer = await post('/v1/account_signup/code', body);
    expect(expectProblem(answer, 422, 'validation_failed').errors[0]?.field).toBe(field);
  });
});
