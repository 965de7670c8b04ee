/** Security: the second factor of a user, from its setup to its loss. */
import { plainRecoveryCode, STEP_MS } from '@sluice/platform/secrets/one-time-password';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { cookieOf, startConsole, type ConsoleWorld } from '../support/console-world.ts';
import { secondFactorsOf } from '../support/second-factor-world.ts';
import { otherThan } from '../support/signup-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
});
afterAll(() => world.close());

const { call, codeOf, require2fa, enrolled, give } = secondFactorsOf(() => world);

test('a user sets a factor up, is mailed a code and gives one of the app, and has a new session each time', async () => {
  const { email, userId, secret, codes, first, cookie } = await enrolled();
  expect(codes).toHaveLength(10);
  expect(cookie).not.toBe(first);
  expect((await call('GET', '/console/me', first)).statusCode).toBe(401);
  expect((await call('GET', '/console/me', cookie)).statusCode).toBe(200);

  const half = await world.signIn(email);
  expect((await call('GET', '/console/session', half)).json()).toMatchObject({
    is_signed_in: false,
    second_factor: 'needs_code',
  });
  const answer = await give(half, { code: codeOf(secret) });
  expect(answer.statusCode).toBe(204);
  expect((await call('GET', '/console/me', half)).statusCode).toBe(401);
  expect((await call('GET', '/console/me', cookieOf(answer))).statusCode).toBe(200);

  const { rows } = await sql<{ kept: string; flags: boolean; log: string }>`
    select (select string_agg(f::text, ' ') from second_factors f) ||
           (select string_agg(r::text, ' ') from recovery_codes r) as kept,
           (select is_two_factor_enabled from users where user_id = ${userId}) as flags,
           (select string_agg(l::text, ' ') from audit_logs l) as log`.execute(world.api.database);
  expect(rows[0]?.flags).toBe(true);
  // As text and as bytes; a recovery code also as it is compared.
  const texts = [secret, ...codes, ...codes.map(plainRecoveryCode)];
  for (const text of texts.flatMap((each) => [each, Buffer.from(each).toString('hex')])) {
    expect(rows[0]?.kept).not.toContain(text);
    expect(rows[0]?.log).not.toContain(text);
  }
  expect(rows[0]?.kept).toContain(hashSecret(plainRecoveryCode(codes[0]!)).toString('hex'));
  expect(rows[0]?.log).toContain('two_factor_enabled');
});

test('the mailed code alone opens no route and changes no second factor, and its session ends after ten minutes', async () => {
  const { api } = world;
  const { email, secret } = await enrolled('account_admin');
  const half = await world.signIn(email);
  const account = `/v1/accounts/${api.a.accountId}`;
  for (const [method, url, workspace] of [
    ['GET', '/console/me', undefined],
    ['GET', '/console/sessions', undefined],
    ['GET', account, undefined],
    ['GET', '/v1/workspaces', api.a.environmentId],
    ['GET', '/v1/stream', api.a.environmentId],
    ['GET', '/console/second_factor', undefined],
    ['POST', '/console/second_factor/setup', undefined],
  ] as const) {
    const answer = await world.call(method, url, { cookie: half, ...(workspace && { workspace }) });
    expectProblem(answer, 403, 'forbidden');
    expect(answer.json().detail).toContain('second factor');
  }
  const code = codeOf(secret);
  for (const [method, url] of [
    ['DELETE', '/console/second_factor'],
    ['POST', '/console/second_factor'],
    ['POST', '/console/second_factor/recovery_codes'],
  ] as const)
    expectProblem(await call(method, url, half, { code }), 403, 'forbidden');
  // Ten minutes are left to give it.
  await sql`update console_sessions set created_at = now() - interval '10 minutes 1 second'`.execute(
    api.database,
  );
  expectProblem(await give(half, { code: codeOf(secret) }), 401, 'unauthorized');
});

test('a code is good once, also for two calls at the same time, and an older one not after it', async () => {
  const { email, secret } = await enrolled();
  const halves = [await world.signIn(email), await world.signIn(email)];
  const code = codeOf(secret);
  const answers = await Promise.all(halves.map((half) => give(half, { code })));
  expect(answers.map(({ statusCode }) => String(statusCode)).toSorted()).toEqual(['204', '422']);
  const left = halves[answers.findIndex(({ statusCode }) => statusCode === 422)]!;
  expectProblem(await give(left, { code: codeOf(secret, -1) }), 422, 'invalid_code');
  expect((await give(left, { code: codeOf(secret, 1) })).statusCode).toBe(204);
});

test('a recovery code is good once, however it is typed, and for its user alone', async () => {
  const one = await enrolled();
  const other = await enrolled();
  const [code = ''] = one.codes;
  expectProblem(
    await give(await world.signIn(other.email), { recovery_code: code }),
    422,
    'invalid_code',
  );
  const typed = code.toLowerCase().replaceAll('-', ' ');
  const answer = await give(await world.signIn(one.email), { recovery_code: typed });
  expect(answer.statusCode).toBe(204);
  expect((await call('GET', '/console/second_factor', cookieOf(answer))).json()).toEqual({
    is_enabled: true,
    recovery_codes_left: 9,
  });
  const again = await world.signIn(one.email);
  expectProblem(await give(again, { recovery_code: code }), 422, 'invalid_code');
});

test('ten codes an hour may be tried for a user, in all sessions together, then the right one too is refused', async () => {
  const { email, secret } = await enrolled();
  world.api.clock.nowMs += 3_600_000;
  const halves = [await world.signIn(email), await world.signIn(email)];
  const wrong = otherThan(codeOf(secret));
  const tries = await Promise.all(
    Array.from({ length: 10 }, (_, index) => give(halves[index % 2]!, { code: wrong })),
  );
  expect(tries.every(({ statusCode }) => statusCode === 422)).toBe(true);
  expectProblem(await give(halves[0]!, { code: codeOf(secret) }), 429, 'too_many_attempts');
  const recovery = { recovery_code: 'AAAA-BBBB-CCCC-DDDD' };
  expectProblem(await give(halves[1]!, recovery), 429, 'too_many_attempts');
  world.api.clock.nowMs += 3_600_000;
  expect((await give(await world.signIn(email), { code: codeOf(secret) })).statusCode).toBe(204);
});

test('if the account requires two factors, sessions with one factor end, and the next sign-in leads to the setup', async () => {
  const { api } = world;
  const before = await world.insertUser(api.b, 'account_admin');
  const old = await world.signIn(before.email);
  const token = await world.call('POST', '/console/session', { body: { token: api.b.token } });
  expect(token.statusCode).toBe(204);
  await sql`update console_sessions set created_at = now() - interval '1 hour'`.execute(
    api.database,
  );
  expect((await require2fa('enable', api.b)).statusCode).toBe(204);
  for (const cookie of [old, cookieOf(token)])
    expectProblem(await call('GET', '/console/me', cookie), 401, 'unauthorized');

  const half = await world.signIn(before.email);
  expect((await call('GET', '/console/session', half)).json().second_factor).toBe('needs_setup');
  expectProblem(await call('GET', '/console/me', half), 403, 'forbidden');
  const { secret } = (await call('POST', '/console/second_factor/setup', half)).json();
  const done = await call('POST', '/console/second_factor', half, { code: codeOf(secret) });
  const cookie = cookieOf(done);
  expect((await call('GET', '/console/me', cookie)).statusCode).toBe(200);
  api.clock.nowMs += STEP_MS;
  const removed = await call('DELETE', '/console/second_factor', cookie, { code: codeOf(secret) });
  expectProblem(removed, 409, 'conflict');

  const refused = await world.call('POST', '/console/session', { body: { token: api.b.token } });
  expectProblem(refused, 403, 'forbidden');
  expect(refused.json().detail).toContain('sign in with a mailed code');
  expect(refused.headers['set-cookie']).toBeUndefined();
  // Machines go on.
  expect((await require2fa('disable', api.b)).statusCode).toBe(204);
});

test('the factor is removed, and its recovery codes are replaced, for a code of it alone', async () => {
  const { cookie, secret, codes, userId } = await enrolled();
  const next = () => {
    world.api.clock.nowMs += STEP_MS;
    return { code: codeOf(secret) };
  };
  const wrong = { code: otherThan(codeOf(secret)) };
  const replace = (body: object) =>
    call('POST', '/console/second_factor/recovery_codes', cookie, body);
  expectProblem(await replace(wrong), 422, 'invalid_code');
  const replaced = await replace(next());
  expect(replaced.json().recovery_codes).toHaveLength(10);
  expect(replaced.json().recovery_codes).not.toContain(codes[0]);
  const remove = (body: object) => call('DELETE', '/console/second_factor', cookie, body);
  expectProblem(await remove({ recovery_code: codes[1] }), 422, 'invalid_code');
  expect((await remove(next())).statusCode).toBe(204);
  const { rows } = await sql<{ count: number; isEnabled: boolean }>`
    select (select count(*)::int from recovery_codes where user_id = u.user_id) as count,
           is_two_factor_enabled as "isEnabled" from users u where user_id = ${userId}`.execute(
    world.api.database,
  );
  expect(rows).toEqual([{ count: 0, isEnabled: false }]);
});

test('a second factor that is copied to another user does not open a session there', async () => {
  const one = await enrolled();
  const other = await enrolled();
  await sql`
    update second_factors set secret = (select secret from second_factors where user_id = ${one.userId})
     where user_id = ${other.userId}`.execute(world.api.database);
  const half = await world.signIn(other.email);
  const answer = await give(half, { code: codeOf(one.secret) });
  expect(answer.statusCode).toBe(500);
  expect(answer.headers['set-cookie']).toBeUndefined();
});

test('a setup that begins again has a new secret, and the first secret is refused', async () => {
  const { email } = await world.insertUser(world.api.a, 'member');
  const cookie = await world.signIn(email);
  const begin = async () =>
    (await call('POST', '/console/second_factor/setup', cookie)).json().secret as string;
  expectProblem(
    await call('POST', '/console/second_factor', cookie, { code: '123456' }),
    409,
    'conflict',
  );
  const first = await begin();
  const second = await begin();
  const confirm = (secret: string) =>
    call('POST', '/console/second_factor', cookie, { code: codeOf(secret) });
  expectProblem(await confirm(first), 422, 'invalid_code');
  const done = await confirm(second);
  expect(done.statusCode).toBe(200);
  const again = await call('POST', '/console/second_factor/setup', cookieOf(done));
  expectProblem(again, 409, 'conflict');
});

test.each([
  [{}, 'code'],
  [{ code: '12345' }, 'code'],
  [{ code: 123456 }, 'code'],
  [{ code: '１２３４５６' }, 'code'],
  [{ recovery_code: 'AAAA-BBBB' }, 'recovery_code'],
])('bad input names its field: %j', async (body, field) => {
  const { email } = await enrolled();
  const answer = await give(await world.signIn(email), body);
  expectProblem(answer, 400, 'invalid_request');
  expect(answer.json().errors[0].field).toBe(field);
});
