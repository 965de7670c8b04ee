/** Codes of a login, under attack: guessed, used twice, late, asked for too fast. */
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../../../support/error-shapes.ts';
import { type ConsoleWorld, startConsole } from '../../support/console-world.ts';
import {
  codeOf,
  createDeviceLogins,
  errorOf,
  type DeviceLogins,
  type Login,
} from './device-logins.ts';

let world: ConsoleWorld;
let logins: DeviceLogins;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());
beforeEach(async () => {
  logins = await createDeviceLogins(world);
});

test('a login is good once: neither a second question nor a second code gets anything', async () => {
  const login = await logins.start();
  await logins.decide(login.user_code);
  const answers = await Promise.all(
    [1, 2, 3].map(() => logins.callAsProgram('/token', codeOf(login))),
  );
  expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(1);
  expect(errorOf(await logins.ask(login))).toBe('expired_token');
  expectProblem(await logins.decide(login.user_code), 422, 'invalid_code');
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from api_credentials
     where account_id = ${logins.tenant.accountId} and for_user_id = ${logins.admin.userId}`.execute(
    world.api.database,
  );
  expect(rows).toEqual([{ count: 2 }]);
});

test('codes are guessed at no higher rate than 20 an hour a user, right ones counted too', async () => {
  const login = await logins.start();
  const answers = [];
  for (let tried = 0; tried < 21; tried += 1) answers.push(await logins.look('BBBB-BBBB'));
  expect(answers.slice(0, 20).every(({ statusCode }) => statusCode === 422)).toBe(true);
  expectProblem(answers[20]!, 429, 'too_many_attempts');
  expectProblem(await logins.decide(login.user_code), 429, 'too_many_attempts');
});

test('a secret of a program is not guessed, and a code is not a secret', async () => {
  const login = await logins.start();
  await logins.decide(login.user_code);
  for (const device_code of ['A'.repeat(43), `${login.device_code.slice(0, 42)}_`])
    if (device_code !== login.device_code)
      expect(errorOf(await logins.callAsProgram('/token', { device_code }))).toBe('expired_token');
  expectProblem(
    await logins.callAsProgram('/token', { device_code: login.user_code }),
    400,
    'invalid_request',
  );
});

test('ten minutes after its start a login is over, also if it was approved', async () => {
  const [late, approved] = [await logins.start(), await logins.start()];
  await logins.decide(approved.user_code);
  await sql`
    update device_logins set started_at = started_at - interval '10 minutes 1 second'`.execute(
    world.api.database,
  );
  expectProblem(await logins.look(late.user_code), 422, 'invalid_code');
  for (const login of [late, approved])
    expect(errorOf(await logins.ask(login))).toBe('expired_token');
});

test('a program that asks too fast is slowed down, each time more', async () => {
  /** 2 s before its interval is over; undefined if a busy machine asked after that. */
  const askEarly = async (login: Login) => {
    const startedAtMs = performance.now();
    await sql`
      update device_logins set polled_at = now() - make_interval(secs => interval_seconds - 2)`.execute(
      world.api.database,
    );
    const answer = await logins.callAsProgram('/token', codeOf(login));
    return performance.now() - startedAtMs < 2_000 ? answer : undefined;
  };
  for (;;) {
    const login = await logins.start();
    expect(errorOf(await logins.callAsProgram('/token', codeOf(login)))).toBe(
      'authorization_pending',
    );
    const early = await askEarly(login);
    // A question too early is refused also after the decision of the user.
    await logins.decide(login.user_code);
    const again = early && (await askEarly(login));
    if (!again) continue;
    expect(early.json()).toMatchObject({ error: 'slow_down', interval: 10 });
    expect(again.json()).toMatchObject({ error: 'slow_down', interval: 15 });
    expect((await logins.ask(login)).statusCode).toBe(200);
    return;
  }
});

test('an address begins 30 logins an hour at most', async () => {
  const ip = world.newIp();
  const begin = () => logins.callAsProgram('', { client_name: 'a' }, ip);
  const answers = await Promise.all(Array.from({ length: 31 }, begin));
  expect(answers.filter(({ statusCode }) => statusCode === 429)).toHaveLength(1);
});

test('a database that is read has no secret and no code of a login', async () => {
  const login = await logins.start();
  const { rows } = await sql<{ text: string }>`
    select string_agg(d::text, ' ') as text from device_logins d`.execute(world.api.database);
  const text = rows[0]?.text ?? '';
  expect(text).toContain('ada-laptop');
  for (const secret of [login.device_code, login.user_code, login.user_code.replace('-', '')]) {
    expect(text).not.toContain(secret);
    expect(text).not.toContain(Buffer.from(secret).toString('hex'));
  }
});
