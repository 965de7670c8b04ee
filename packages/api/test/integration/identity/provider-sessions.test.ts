/** After a sign-in by a provider: the requested screen, the sign-out, and the end of the session. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkDueDomains } from '../../../src/identity/check-domains.ts';
import { domainRecordText } from '../../../src/identity/domain-records.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import { SECRET } from '../support/api-under-test.ts';
import { insertTenant, type Tenant } from '../support/inserted-rows.ts';
import { type ProviderWorld, sessionOf, startProviderWorld } from '../support/provider-world.ts';
import { secondFactorsOf } from '../support/second-factor-world.ts';

let world: ProviderWorld;
beforeAll(async () => {
  world = await startProviderWorld();
});
afterAll(() => world.close());

const { codeOf, require2fa, call } = secondFactorsOf(() => world);
let count = 0;
const newTenant = (): Promise<Tenant> => insertTenant(world.api.database, `sessions_${++count}`);
const isOpen = async (cookie: string): Promise<boolean> =>
  (await world.call('GET', '/console/me', { cookie })).statusCode === 200;
const signOut = (cookie: string) => world.call('DELETE', '/console/session', { cookie });
/** An account with a provider, and a user of it. */
async function newUser() {
  const tenant = await newTenant();
  const { provider, domain } = await world.connected(tenant);
  const { email } = await world.insertUser(tenant, 'member', `ada@${domain}`);
  const settings = world.settingsOf(provider, domain);
  return { tenant, provider, domain, email, settings };
}

test('the screen that was asked for is shown after the sign-in', async () => {
  const { provider, email } = await newUser();
  const path = '/webhooks/2?tz=local';
  const begun = await world.begin(email, path);
  const back = await provider.authorize(begun.url, { sub: '1', email, email_verified: true });
  // It does not pass through the provider.
  expect(decodeURIComponent(begun.url)).not.toContain('/webhooks/2');
  const answer = await world.finish(back, begun.cookie);
  expect({ status: answer.statusCode, body: answer.json() }).toEqual({
    status: 200,
    body: { return_path: path },
  });
  expect(await isOpen(sessionOf(answer))).toBe(true);
});

// Security: open redirects (`domain/test/accounts/return-path.test.ts` has the texts).
test.each([
  'https://evil.test/',
  '//evil.test/',
  '/\\evil.test',
  '/sign-in/7?code=1',
  '/..//evil.test',
])('a sign-in that was begun for %s leads to the first screen', async (path) => {
  const { provider, email } = await newUser();
  const begun = await world.begin(email, path);
  const back = await provider.authorize(begun.url, { sub: '1', email, email_verified: true });
  const answer = await world.finish(back, begun.cookie);
  expect(answer.statusCode).toBe(204);
  expect(answer.body).toBe('');
  expect(answer.headers['location']).toBeUndefined();
});

test('a caller cannot change the screen when the browser comes back', async () => {
  const { provider, email } = await newUser();
  const begun = await world.begin(email, '/live');
  const back = await provider.authorize(begun.url, { sub: '1', email, email_verified: true });
  const answer = await world.finish(back, begun.cookie, { return_path: '/users' });
  expectProblem(answer, 400, 'invalid_request');
});

test('a sign-out also ends the session at the provider, if the provider offers it', async () => {
  const { provider, email } = await newUser();
  provider.lies.metadata = { end_session_endpoint: `${provider.issuer}/sign-out?kind=all` };
  const cookie = sessionOf(await world.signInBy(provider, email));
  const answer = await signOut(cookie);
  expect(answer.statusCode).toBe(200);
  const url = new URL(answer.json().url);
  expect(url.origin + url.pathname).toBe(`${provider.issuer}/sign-out`);
  expect(url.searchParams.get('kind')).toBe('all');
  expect(url.searchParams.get('client_id')).toBe(provider.clientId);
  const [, claims = ''] = (url.searchParams.get('id_token_hint') ?? '').split('.');
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
    sub: `sub of ${email}`,
    iss: provider.issuer,
  });
  expect(await isOpen(cookie)).toBe(false);
  // Once: the session is over.
  expect((await signOut(cookie)).statusCode).toBe(204);
});

test('a sign-out at the provider knows the person also after a second factor', async () => {
  const { tenant, provider, email } = await newUser();
  provider.lies.metadata = { end_session_endpoint: `${provider.issuer}/sign-out` };
  expect((await require2fa('enable', tenant)).statusCode).toBe(204);
  const half = sessionOf(await world.signInBy(provider, email));
  const { secret } = (await call('POST', '/console/second_factor/setup', half)).json();
  const whole = sessionOf(
    await call('POST', '/console/second_factor', half, { code: codeOf(secret) }),
  );
  const url = new URL((await signOut(whole)).json().url);
  expect(url.searchParams.get('id_token_hint')).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
});

test.each<[string, (issuer: string) => Record<string, unknown>]>([
  ['none', () => ({})],
  ['a script', () => ({ end_session_endpoint: 'javascript:alert(1)//' })],
  ['no address', () => ({ end_session_endpoint: 'sign-out' })],
])(
  'if the sign-out address of the provider is %s, only the session of Sluice ends',
  async (_what, metadataOf) => {
    const { provider, email } = await newUser();
    provider.lies.metadata = metadataOf(provider.issuer);
    const cookie = sessionOf(await world.signInBy(provider, email));
    expect((await signOut(cookie)).statusCode).toBe(204);
    expect(await isOpen(cookie)).toBe(false);
  },
);

test('a provider that is away does not keep anybody signed in', async () => {
  const { provider, email } = await newUser();
  const cookie = sessionOf(await world.signInBy(provider, email));
  provider.lies.status = 503;
  expect((await signOut(cookie)).statusCode).toBe(204);
  expect(await isOpen(cookie)).toBe(false);
});

test('a user who signed in by a code is not sent to the provider', async () => {
  const { provider, email } = await newUser();
  provider.lies.metadata = { end_session_endpoint: `${provider.issuer}/sign-out` };
  expect((await signOut(await world.signIn(email))).statusCode).toBe(204);
});

// Security: a reader of the database cannot learn about the person from it, nor use it.
test('the ID token is kept so that the cookie alone opens it', async () => {
  const { provider, email } = await newUser();
  const answer = await world.signInBy(provider, email, { secret_attribute: 'of the person' });
  const { rows } = await sql<{ text: string }>`
    select string_agg(s::text, ' ') as text from console_sessions s where id_token is not null`.execute(
    world.api.database,
  );
  const text = rows[0]?.text ?? '';
  expect(text).toContain('sealed:cookie:');
  expect(text).not.toContain(sessionOf(answer).split('=')[1]);
  for (const part of text.split(/[:,]/))
    expect(Buffer.from(part, 'base64url').toString()).not.toContain('of the person');
});

test('a domain that is taken out ends the sessions that came by it, and those alone', async () => {
  const { tenant, provider, domain, email, settings } = await newUser();
  const other = `other-${domain}`;
  world.prove(tenant, other);
  const both = { ...settings, email_domains: [domain, other] };
  expect((await world.put(tenant, both)).statusCode).toBe(200);
  await world.insertUser(tenant, 'member', `grace@${other}`);
  const gone = sessionOf(await world.signInBy(provider, email));
  const kept = sessionOf(await world.signInBy(provider, `grace@${other}`));
  const byCode = await world.signIn(email);
  // By the address that the provider named, for every address of the user.
  const moved = sessionOf(
    await world.signInBy(provider, `grace@${other}`, {
      sub: `sub of grace@${other}`,
      email: `grace@${domain}`,
    }),
  );
  const begun = await world.begin(email);
  const back = await provider.authorize(begun.url, { sub: '9', email, email_verified: true });
  expect((await world.put(tenant, { ...settings, email_domains: [other] })).statusCode).toBe(200);
  expect(await Promise.all([gone, kept, byCode, moved].map(isOpen))).toEqual([
    false,
    true,
    true,
    false,
  ]);
  // Nor does a sign-in that was begun before open one.
  expectProblem(await world.finish(back, begun.cookie), 403, 'forbidden');
});

const makeDue = (domain: string) =>
  sql`
    update identity_provider_domains set check_due_at = now() - interval '1 second'
     where domain = ${domain}`.execute(world.api.database);
const check = (readTextRecords?: () => Promise<readonly string[]>): Promise<number> =>
  checkDueDomains({
    database: world.api.database,
    secret: SECRET,
    operatorAccountIds: [],
    readTextRecords: readTextRecords ?? (async (name) => world.records.get(name) ?? []),
    logger: { warn: () => undefined } as never,
    now: () => world.api.clock.nowMs,
  });
/** As a day later. */
async function checkAgain(...[domain, readTextRecords]: [string, Parameters<typeof check>[0]?]) {
  await makeDue(domain);
  return check(readTextRecords);
}

test('a domain whose record is gone at two daily checks in a row is taken out, and its sessions end', async () => {
  const { tenant, provider, domain, email } = await newUser();
  const cookie = sessionOf(await world.signInBy(provider, email));
  expect(await checkAgain(domain)).toBe(1);
  // Not again before tomorrow.
  const { rows } = await sql<{ isTomorrow: boolean }>`
    select check_due_at > now() + interval '23 hours' as "isTomorrow" from identity_provider_domains
     where domain = ${domain}`.execute(world.api.database);
  expect(rows).toEqual([{ isTomorrow: true }]);

  world.records.delete(`_sluice.${domain}`);
  await checkAgain(domain);
  expect(await isOpen(cookie)).toBe(true);
  // The record is back in between: that begins anew.
  world.prove(tenant, domain);
  await checkAgain(domain);
  world.records.set(`_sluice.${domain}`, ['another text']);
  await checkAgain(domain);
  expect(await isOpen(cookie)).toBe(true);
  await checkAgain(domain);
  expect(await isOpen(cookie)).toBe(false);

  const path = `/v1/accounts/${tenant.accountId}/identity_provider`;
  const read = await world.api.call('GET', path, { key: tenant.token });
  expect(read.json().identity_provider.email_domains).toEqual([]);
  const lookUp = await world.call('POST', '/console/session/provider', { body: { email } });
  expect(lookUp.json()).toEqual({ provider: null });
  const { rows: entries } = await sql<{ action: string; actor: string }>`
    select action, actor_type as actor from audit_logs
     where account_id = ${tenant.accountId} and object_type = 'identity_provider' order by audit_log_id desc limit 1`.execute(
    world.api.database,
  );
  expect(entries).toEqual([{ action: 'updated', actor: 'system' }]);
});

test('while no name server answers, no domain is taken out', async () => {
  const { provider, domain, email } = await newUser();
  const cookie = sessionOf(await world.signInBy(provider, email));
  const silent = () => Promise.reject(new Error('no server answers'));
  for (const _day of [1, 2, 3]) expect(await checkAgain(domain, silent)).toBe(1);
  expect(await isOpen(cookie)).toBe(true);
});

test('a domain stays proved by the record that proved it, also after API_SECRET has changed', async () => {
  const { tenant, domain } = await newUser();
  const current = domainRecordText(SECRET, tenant.accountId);
  await sql`
    update identity_provider_domains set record_text = 'by the secret before' where domain = ${domain}`.execute(
    world.api.database,
  );
  const domains = async () => {
    const { rows } = await sql<{ text: string; missing: number }>`
      select record_text as text, missing_count as missing from identity_provider_domains
       where domain = ${domain}`.execute(world.api.database);
    return rows;
  };
  world.records.set(`_sluice.${domain}`, ['by the secret before']);
  for (const _day of [1, 2, 3]) await checkAgain(domain);
  expect(await domains()).toEqual([{ text: 'by the secret before', missing: 0 }]);
  world.records.set(`_sluice.${domain}`, [current]);
  await checkAgain(domain);
  expect(await domains()).toEqual([{ text: current, missing: 0 }]);
  // The record of another account does not count.
  world.records.set(`_sluice.${domain}`, [domainRecordText(SECRET, tenant.accountId + 1)]);
  await checkAgain(domain);
  expect(await domains()).toEqual([{ text: current, missing: 1 }]);
});

test('two processes check a domain once', async () => {
  const { domain } = await newUser();
  await makeDue(domain);
  const taken = await Promise.all([check(), check()]);
  expect(taken.toSorted((one, other) => one - other)).toEqual([0, 1]);
});
