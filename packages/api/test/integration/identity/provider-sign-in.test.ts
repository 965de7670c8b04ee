/** Signing in to the console by the identity provider of the account. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertTenant, type Tenant } from '../support/inserted-rows.ts';
import { type ProviderWorld, sessionOf, startProviderWorld } from '../support/provider-world.ts';
import { secondFactorsOf } from '../support/second-factor-world.ts';

let world: ProviderWorld;
beforeAll(async () => {
  world = await startProviderWorld();
});
afterAll(() => world.close());

const { codeOf, give, require2fa, call } = secondFactorsOf(() => world);
let count = 0;
const newTenant = (): Promise<Tenant> => insertTenant(world.api.database, `of_provider_${++count}`);
const meOf = (cookie: string) => world.call('GET', '/console/me', { cookie });
const lookUp = async (email: string) =>
  (await world.call('POST', '/console/session/provider', { body: { email } })).json().provider;

test('a user of a domain with a provider is offered it, signs in there, and has a session in the audit log', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const { email, userId } = await world.insertUser(tenant, 'member', `ada@${domain}`);
  const host = new URL(provider.issuer).host;
  expect(await lookUp(email)).toEqual({ name: host, required: false });
  // The domain alone counts: the answer does not show whose address it is.
  expect(await lookUp(`nobody@${domain.toUpperCase()}`)).toEqual({ name: host, required: false });
  expect(await lookUp(`ada@mail.${domain}`)).toBeNull();

  const begun = await world.begin(email);
  const address = new URL(begun.url);
  expect(Object.fromEntries(address.searchParams)).toMatchObject({
    response_type: 'code',
    scope: 'openid email profile',
    code_challenge_method: 'S256',
    login_hint: email,
    redirect_uri: `http://localhost:80/sign-in/${tenant.accountId}`.replace(':80', ''),
  });
  const back = await provider.authorize(begun.url, { sub: 'ada', email, email_verified: true });
  const answer = await world.finish(back, begun.cookie);
  expect(answer.statusCode).toBe(204);
  expect((await meOf(sessionOf(answer))).json()).toMatchObject({
    user: { id: userId, email, role: 'member' },
    account: { id: tenant.accountId },
    session: { way: 'provider' },
  });
  const { rows } = await sql<{ way: string; isSso: boolean; hasSignedIn: boolean }>`
    select l.changes::text as way, u.is_sso as "isSso", u.last_sign_in_at is not null as "hasSignedIn"
      from audit_logs l join users u on (u.account_id, u.user_id) = (l.account_id, l.user_id)
     where l.account_id = ${tenant.accountId} and l.object_type = 'console_session'`.execute(
    world.api.database,
  );
  expect(rows).toMatchObject([{ isSso: true, hasSignedIn: true }]);
  expect(rows[0]?.way).toContain('provider');
});

test('a person is known by the name of the provider: the address may change, but another person does not get it', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const { email, userId } = await world.insertUser(tenant, 'member', `ada@${domain}`);
  const first = await world.signInBy(provider, email, { sub: '1' });
  expect(first.statusCode).toBe(204);
  const renamed = await world.signInBy(provider, email, { sub: '1', email: `countess@${domain}` });
  expect((await meOf(sessionOf(renamed))).json().user).toMatchObject({ id: userId, email });
  const other = await world.signInBy(provider, email, { sub: '2' });
  expectProblem(other, 403, 'forbidden');
  expect(other.json().detail).toContain('another person');
  expect(sessionOf(other)).toBe('no session');
});

test('an unknown person is refused, or becomes a user with the role and workspaces from the settings', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const settings = world.settingsOf(provider, domain);
  const refused = await world.signInBy(provider, `grace@${domain}`);
  expectProblem(refused, 403, 'forbidden');
  expect(refused.json().detail).toContain('invite');

  const changed = await world.put(tenant, {
    ...settings,
    new_user_role: 'member',
    new_user_environment_ids: [tenant.environmentId],
  });
  expect(changed.statusCode).toBe(200);
  const answer = await world.signInBy(provider, `grace@${domain}`, {
    given_name: 'Grace',
    family_name: 'Hopper\u0000',
  });
  expect((await meOf(sessionOf(answer))).json()).toMatchObject({
    user: { email: `grace@${domain}`, role: 'member' },
    workspaces: [{ id: tenant.environmentId }],
  });
  const { rows } = await sql<object>`
    select first_name as "firstName", last_name as "lastName", status, is_sso as "isSso" from users
     where account_id = ${tenant.accountId}`.execute(world.api.database);
  expect(rows).toEqual([{ firstName: 'Grace', lastName: '', status: 'active', isSso: true }]);
});

test('two first sign-ins of one person at the same time make one user', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant, { new_user_role: 'member' });
  const answers = await Promise.all([1, 2, 3].map(() => world.signInBy(provider, `one@${domain}`)));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([204, 204, 204]);
  const { rows } = await sql`select from users where account_id = ${tenant.accountId}`.execute(
    world.api.database,
  );
  expect(rows).toHaveLength(1);
});

test('an invited user is active from the first sign-in, and a removed one is refused until invited again', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const users = `/v1/accounts/${tenant.accountId}/users`;
  const email = `ada@${domain}`;
  const invite = () =>
    world.api.call('POST', users, {
      key: tenant.token,
      body: { email, role: 'member', environment_ids: [] },
    });
  const { user } = (await invite()).json();
  const answer = await world.signInBy(provider, email, { sub: '1' });
  expect((await meOf(sessionOf(answer))).statusCode).toBe(200);
  expect(
    (await world.api.call('DELETE', `${users}/${user.id}`, { key: tenant.token })).statusCode,
  ).toBe(204);
  expect((await meOf(sessionOf(answer))).statusCode).toBe(401);
  expectProblem(await world.signInBy(provider, email, { sub: '1' }), 403, 'forbidden');
  await invite();
  // The present owner of the address.
  expect((await world.signInBy(provider, email, { sub: '2' })).statusCode).toBe(204);
});

test('an email that is not in the ID token is asked of userinfo', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  await world.insertUser(tenant, 'member', `ada@${domain}`);
  provider.state.isThin = true;
  expect((await world.signInBy(provider, `ada@${domain}`)).statusCode).toBe(204);
  expect(provider.requests.map(({ path }) => path)).toContain('/userinfo');
});

test('the client secret goes as the provider takes it', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant, {});
  await world.insertUser(tenant, 'member', `ada@${domain}`);
  const forms = () => provider.requests.filter(({ path }) => path === '/token').at(-1)?.body;
  expect((await world.signInBy(provider, `ada@${domain}`)).statusCode).toBe(204);
  expect(forms()).not.toContain('client_secret');
  provider.lies.metadata = { token_endpoint_auth_methods_supported: ['client_secret_post'] };
  expect((await world.signInBy(provider, `ada@${domain}`)).statusCode).toBe(204);
  expect(forms()).toContain('client_secret');
});

test('if two factors are required, the provider counts as two only with the setting of the account', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const settings = world.settingsOf(provider, domain);
  await world.insertUser(tenant, 'member', `ada@${domain}`);
  expect((await require2fa('enable', tenant)).statusCode).toBe(204);

  const half = sessionOf(await world.signInBy(provider, `ada@${domain}`));
  expectProblem(await meOf(half), 403, 'forbidden');
  expect((await call('GET', '/console/session', half)).json().second_factor).toBe('needs_setup');
  const { secret } = (await call('POST', '/console/second_factor/setup', half)).json();
  const done = await call('POST', '/console/second_factor', half, { code: codeOf(secret) });
  expect((await meOf(sessionOf(done))).json().session.way).toBe('provider');
  world.api.clock.nowMs += 30_000;
  const asked = sessionOf(await world.signInBy(provider, `ada@${domain}`));
  const given = await give(asked, { code: codeOf(secret) });
  expect((await meOf(sessionOf(given))).statusCode).toBe(200);

  expect((await world.put(tenant, { ...settings, counts_as_two_factors: true })).statusCode).toBe(
    200,
  );
  // The requirements of the session have changed.
  expect((await meOf(sessionOf(given))).statusCode).toBe(401);
  const whole = sessionOf(await world.signInBy(provider, `ada@${domain}`));
  expect((await meOf(whole)).statusCode).toBe(200);
  expect((await world.put(tenant, settings)).statusCode).toBe(200);
  expect((await meOf(whole)).statusCode).toBe(401);
});

test('a user’s own second factor is asked for, unless the provider counts as two', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const { email } = await world.insertUser(tenant, 'member', `ada@${domain}`);
  const first = sessionOf(await world.signInBy(provider, email));
  const { secret } = (await call('POST', '/console/second_factor/setup', first)).json();
  await call('POST', '/console/second_factor', first, { code: codeOf(secret) });
  const half = sessionOf(await world.signInBy(provider, email));
  expect((await call('GET', '/console/session', half)).json().second_factor).toBe('needs_code');
  const settings = world.settingsOf(provider, domain);
  await world.put(tenant, { ...settings, counts_as_two_factors: true });
  const whole = sessionOf(await world.signInBy(provider, email));
  expect((await meOf(whole)).statusCode).toBe(200);
});

test('a required provider ends the sessions by mailed code or token, and refuses new ones', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const settings = world.settingsOf(provider, domain);
  const { email } = await world.insertUser(tenant, 'account_admin', `ada@${domain}`);
  const byCode = await world.signIn(email);
  const byToken = sessionOf(
    await world.call('POST', '/console/session', { body: { token: tenant.token } }),
  );
  const early = await world.mailedCode(email);
  const byProvider = sessionOf(await world.signInBy(provider, email));
  expect((await world.put(tenant, { ...settings, required: true })).statusCode).toBe(200);
  for (const cookie of [byCode, byToken]) expectProblem(await meOf(cookie), 401, 'unauthorized');
  expect((await meOf(byProvider)).statusCode).toBe(200);

  expect(await lookUp(email)).toMatchObject({ required: true });
  // A code that was mailed before; and no further code is mailed.
  expectProblem(await world.giveCode(email, early), 403, 'forbidden');
  const mails = world.mails.length;
  await world.call('POST', '/console/session/code', { body: { email } });
  await world.relay();
  expect(world.mails).toHaveLength(mails);
  const refused = await world.call('POST', '/console/session', { body: { token: tenant.token } });
  expectProblem(refused, 403, 'forbidden');
  // Programs go on, and lift it if the provider is gone for good.
  expect((await world.put(tenant, settings)).statusCode).toBe(200);
  // An address gets three codes an hour.
  world.api.clock.nowMs += 3_600_000;
  expect((await meOf(await world.signIn(email))).statusCode).toBe(200);
});

test('if the provider is away, the answer suggests a mailed code, and the code opens the console', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const { email } = await world.insertUser(tenant, 'member', `ada@${domain}`);
  const begun = await world.begin(email);
  const back = await provider.authorize(begun.url, { sub: '1', email, email_verified: true });
  provider.lies.status = 503;
  const beginning = await world.call('POST', '/console/session/provider/begin', {
    body: { email },
  });
  for (const answer of [beginning, await world.finish(back, begun.cookie)]) {
    expectProblem(answer, 409, 'conflict');
    expect(answer.json().detail).toContain('mailed code');
  }
  await provider.close();
  const gone = await world.call('POST', '/console/session/provider/begin', { body: { email } });
  expectProblem(gone, 409, 'conflict');
  expect((await meOf(await world.signIn(email))).statusCode).toBe(200);
});

test('a wrong client secret is refused with the code invalid_client', async () => {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const settings = world.settingsOf(provider, domain);
  await world.put(tenant, { ...settings, client_secret: 'wrong' });
  const answer = await world.signInBy(provider, `ada@${domain}`);
  expectProblem(answer, 403, 'forbidden');
  expect(answer.json().detail).toContain('invalid_client');
});
