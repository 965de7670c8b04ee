/** Security: attacks on a sign-in by an identity provider open no session. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createVettedConnector } from '@sluice/platform/outgoing/vetted-connection';
import { createProviderClient } from '../../../src/identity/provider-client.ts';
import { createProviderFetch } from '../../../src/identity/provider-fetch.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertTenant, type Tenant } from '../support/inserted-rows.ts';
import { type ProviderWorld, sessionOf, startProviderWorld } from '../support/provider-world.ts';

let world: ProviderWorld;
let count = 0;
let tenant: Tenant;
let provider: Awaited<ReturnType<ProviderWorld['startProvider']>>;
let domain: string;
let email: string;
beforeAll(async () => {
  world = await startProviderWorld();
});
afterAll(() => world.close());
beforeEach(async () => {
  tenant = await insertTenant(world.api.database, `attacked_${++count}`);
  ({ provider, domain } = await world.connected(tenant));
  email = `ada@${domain}`;
  await world.insertUser(tenant, 'account_admin', email);
});

type Answer = Awaited<ReturnType<ProviderWorld['finish']>>;
function expectRefused(answer: Answer, status = 403): void {
  expectProblem(answer, status, status === 403 ? 'forbidden' : 'conflict');
  expect(sessionOf(answer)).toBe('no session');
}
const person = () => ({ sub: 'ada', email, email_verified: true });
const failuresOf = async (): Promise<unknown[]> => {
  const { rows } = await sql`
    select changes from audit_logs
     where account_id = ${tenant.accountId} and object_type = 'failed_sign_in'`.execute(
    world.api.database,
  );
  return rows;
};

test('an answer is good once', async () => {
  const begun = await world.begin(email);
  const back = await provider.authorize(begun.url, person());
  expect((await world.finish(back, begun.cookie)).statusCode).toBe(204);
  expectRefused(await world.finish(back, begun.cookie));
  const again = await world.begin(email);
  const answers = await Promise.all(
    [await provider.authorize(again.url, person())].flatMap((url) =>
      [1, 2, 3].map(() => world.finish(url, again.cookie)),
    ),
  );
  expect(answers.filter(({ statusCode }) => statusCode === 204)).toHaveLength(1);
});

test('a stolen answer is refused in another browser, even within a sign-in of the thief', async () => {
  const begun = await world.begin(email);
  const back = await provider.authorize(begun.url, person());
  const thief = await world.begin(email);
  for (const cookie of [undefined, thief.cookie, 'sluice-sign-in-80=guessed'])
    expectRefused(await world.finish(back, cookie));
  // Nor with a sign-in of the thief's own: the code belongs to the other one's verifier.
  const own = await provider.authorize(thief.url, person());
  own.searchParams.set('code', back.searchParams.get('code') ?? '');
  const mixed = await world.finish(own, thief.cookie);
  expectRefused(mixed);
  expect(mixed.json().detail).toContain('invalid_grant');
});

test('a sign-in link of an attacker is refused, and the session of the victim stays open', async () => {
  const attacker = await world.begin(email);
  const back = await provider.authorize(attacker.url, person());
  const victim = await world.signIn(email);
  expectRefused(await world.finish(back, victim));
  const foreign = await world.call('POST', '/console/session/provider/finish', {
    body: { account_id: tenant.accountId, code: 'c', state: 's'.repeat(43) },
    headers: { 'sec-fetch-site': 'cross-site' },
  });
  expectProblem(foreign, 403, 'forbidden');
  expect((await world.call('GET', '/console/me', { cookie: victim })).statusCode).toBe(200);
});

test('ten minutes after its beginning a sign-in is over', async () => {
  const begun = await world.begin(email);
  const back = await provider.authorize(begun.url, person());
  await sql`
    update provider_sign_ins set started_at = now() - interval '10 minutes 1 second'
     where account_id = ${tenant.accountId}`.execute(world.api.database);
  expectRefused(await world.finish(back, begun.cookie));
});

test.each<[string, (now: number) => Record<string, unknown>]>([
  ['for another client', () => ({ aud: 'another client' })],
  ['for several clients', () => ({ aud: ['sluice', 'another client'] })],
  ['of another issuer', () => ({ iss: 'https://accounts.example' })],
  ['with another nonce', () => ({ nonce: 'nonce of another sign-in' })],
  ['without a nonce', () => ({ nonce: undefined })],
  ['that has expired', (now) => ({ iat: now - 600, exp: now - 120 })],
  ['without an end', () => ({ exp: undefined })],
])('an ID token %s is refused', async (_what, claims) => {
  provider.lies.claims = claims(Math.floor(world.api.clock.nowMs / 1000));
  expectRefused(await world.signInBy(provider, email));
});

test('an ID token that another key signed is refused, and one without a signature', async () => {
  provider.lies.key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  expectRefused(await world.signInBy(provider, email));
  delete provider.lies.key;
  for (const algorithm of ['none', 'HS256']) {
    provider.lies.algorithm = algorithm;
    expectRefused(await world.signInBy(provider, email));
  }
});

test('an email that is not verified leads to no user, and the audit log records the failure', async () => {
  for (const claims of [
    { email_verified: false },
    { email_verified: undefined },
    { email_verified: 'no' },
  ])
    expectRefused(await world.signInBy(provider, email, claims));
  expect(await failuresOf()).toHaveLength(1);
  expect(JSON.stringify(await failuresOf())).toContain('provider');
});

test('an address of a domain that is not the account’s leads nowhere, nor does another spelling of a user’s', async () => {
  const elsewhere = await world.insertUser(tenant, 'account_admin');
  for (const address of [
    elsewhere.email,
    `ada@mail.${domain}`,
    `ada@${domain}.evil.test`,
    `ada@${domain}, x@evil.test`,
    `ada@evil.test@${domain}@evil.test`,
    `\u212Ada@${domain}`,
  ])
    expectRefused(await world.signInBy(provider, email, { email: address, sub: address }));
});

test('a provider cannot sign in a user of another account or make a copy of that user', async () => {
  const other = await insertTenant(world.api.database, `other_${count}`);
  const theirs = await world.insertUser(other, 'account_admin', `grace@${domain}`);
  await world.put(tenant, { ...world.settingsOf(provider, domain), new_user_role: 'member' });
  const refused = await world.signInBy(provider, theirs.email);
  expectRefused(refused);
  expect(refused.json().detail).toContain('another account');
  const { rows } = await sql`
    select from users where email = ${theirs.email} and account_id = ${tenant.accountId}`.execute(
    world.api.database,
  );
  expect(rows).toEqual([]);
});

test('a removed user cannot return under another address until that address is invited', async () => {
  await world.put(tenant, { ...world.settingsOf(provider, domain), new_user_role: 'member' });
  const users = `/v1/accounts/${tenant.accountId}/users`;
  const eve = { sub: 'eve' };
  expect((await world.signInBy(provider, `eve@${domain}`, eve)).statusCode).toBe(204);
  const { rows } = await sql<{ id: number }>`
    select user_id as id from users where email = ${`eve@${domain}`}`.execute(world.api.database);
  await world.api.call('DELETE', `${users}/${rows[0]?.id}`, { key: tenant.token });
  const again = await world.signInBy(provider, `eve2@${domain}`, eve);
  expectRefused(again);
  expect(again.json().detail).toContain('removed');
  const invite = async (address: string): Promise<void> => {
    const body = { email: address, role: 'member', environment_ids: [] };
    const answer = await world.api.call('POST', users, { key: tenant.token, body });
    expect(answer.statusCode).toBe(200);
  };
  await invite(`eve2@${domain}`);
  for (const address of [`eve2@${domain}`, `eve3@${domain}`])
    expect((await world.signInBy(provider, address, eve)).statusCode).toBe(204);
  // The first address may be another person's by now.
  await invite(`eve@${domain}`);
  const next = await world.signInBy(provider, `eve@${domain}`, { sub: 'another eve' });
  expect(next.statusCode).toBe(204);
});

test('a name of a person that no provider may give is refused, and is no failure of ours', async () => {
  for (const sub of ['s'.repeat(256), randomBytes(3_000).toString('hex'), 'a\u0000b', '\u00e9'])
    expectRefused(await world.signInBy(provider, email, { sub }));
  expect((await world.signInBy(provider, email, { sub: 's'.repeat(255) })).statusCode).toBe(204);
});

test.each([
  'HTTPS://accounts.google.com',
  'https://accounts.google.com:443',
  'https://Accounts%2Egoogle.com/',
  'https://login.example.com/\u00e9',
])('an issuer is written in one way, by which rules know it: %s', async (issuer) => {
  const answer = await world.put(tenant, { ...world.settingsOf(provider, domain), issuer });
  expectProblem(answer, 422, 'validation_failed');
  expect(answer.json().detail).toContain('must be written as https://');
});

test('the domain of a closed account is free for any account that proves it', async () => {
  const next = await insertTenant(world.api.database, `next_${count}`);
  world.prove(next, domain);
  const body = world.settingsOf(await world.startProvider(), domain);
  expectProblem(await world.put(next, body), 409, 'conflict');
  await sql`
    update accounts set status = 'closed' where account_id = ${tenant.accountId}`.execute(
    world.api.database,
  );
  world.records.clear();
  expectProblem(await world.put(next, body), 422, 'validation_failed');
  world.prove(next, domain);
  expect((await world.put(next, body)).statusCode).toBe(200);
});

test('the answer of one provider is good for no account but its own', async () => {
  const other = await insertTenant(world.api.database, `mixed_${count}`);
  const evil = await world.connected(other);
  // The provider of the attacker's account sends the browser on to the honest one, with the state of the sign-in that
  // was begun with itself (mix-up): the honest provider sends its code to the path of the honest account.
  const begun = await world.begin(`mallory@${evil.domain}`);
  const toHonest = new URL(begun.url);
  toHonest.host = new URL(provider.issuer).host;
  toHonest.searchParams.set('redirect_uri', `http://localhost/sign-in/${tenant.accountId}`);
  const back = await provider.authorize(toHonest.href, person());
  expectRefused(await world.finish(back, begun.cookie));
  // Handed in for the attacker's account, it goes nowhere: the answer names its issuer.
  const code = back.searchParams.get('code') ?? '';
  expectRefused(await world.finish(back, begun.cookie, { account_id: other.accountId }));
  expect(JSON.stringify(evil.provider.requests)).not.toContain(code);
});

test('an answer without its issuer is refused if the provider announces that it names itself', async () => {
  const begun = await world.begin(email);
  const back = await provider.authorize(begun.url, person());
  back.searchParams.delete('iss');
  expectRefused(await world.finish(back, begun.cookie));
});

test('a sign-in is refused if its provider was replaced meanwhile', async () => {
  const begun = await world.begin(email);
  const back = await provider.authorize(begun.url, person());
  const next = await world.startProvider();
  expect((await world.put(tenant, world.settingsOf(next, domain))).statusCode).toBe(200);
  expectRefused(await world.finish(back, begun.cookie), 409);
  expect(next.requests).toEqual([]);
});

test('a provider that describes itself as another, or leads the browser to a script, is not used', async () => {
  for (const metadata of [
    { issuer: 'https://accounts.example' },
    { authorization_endpoint: 'javascript:alert(1)//' },
    { authorization_endpoint: 'data:text/html,<script>' },
  ]) {
    provider.lies.metadata = metadata;
    const answer = await world.call('POST', '/console/session/provider/begin', { body: { email } });
    expectProblem(answer, 409, 'conflict');
    expect(answer.headers['set-cookie']).toBeUndefined();
  }
});

test('a caller cannot choose the address to which the browser goes', async () => {
  for (const extra of [
    { return_url: 'https://evil.test' },
    { redirect_uri: 'https://evil.test' },
    { issuer: 'https://evil.test' },
  ]) {
    const answer = await world.call('POST', '/console/session/provider/begin', {
      body: { email, ...extra },
    });
    expectProblem(answer, 400, 'invalid_request');
  }
  const begun = await world.begin(email);
  const back = await provider.authorize(begun.url, person());
  const answer = await world.finish(back, begun.cookie);
  expect(answer.headers['location']).toBeUndefined();
});

test('in production no provider on a private address is called', async () => {
  const client = createProviderClient(
    createProviderFetch(createVettedConnector({ allowPrivate: false })),
    () => world.api.clock.nowMs,
  );
  const asked = provider.requests.length;
  const secrets = { redirectUri: 'http://localhost/', state: 's', nonce: 'n', codeVerifier: 'v' };
  const known = { ...provider, issuer: provider.issuer };
  expect(await client.begin(known, secrets, email)).toMatchObject({
    outcome: 'away',
    detail: expect.stringContaining('refused address (loopback)'),
  });
  expect(provider.requests).toHaveLength(asked);
});

test('an address may try a bounded number of times', async () => {
  const ip = world.newIp();
  const give = () =>
    world.call('POST', '/console/session/provider', { body: { email: 'a@none.example' }, ip });
  const answers = await Promise.all(Array.from({ length: 301 }, give));
  expect(answers.filter(({ statusCode }) => statusCode === 429)).toHaveLength(1);
});

test('the secrets of a sign-in are not stored', async () => {
  const begun = await world.begin(email);
  const back = await provider.authorize(begun.url, person());
  const { rows } = await sql<{ text: string }>`
    select coalesce(string_agg(s::text, ' '), '') || ' ' ||
           (select string_agg(p::text, ' ') from identity_providers p) || ' ' ||
           (select string_agg(l::text, ' ') from audit_logs l) as text
      from provider_sign_ins s`.execute(world.api.database);
  const secrets = [
    provider.clientSecret,
    begun.cookie?.split('=')[1] ?? '',
    back.searchParams.get('code') ?? '',
    back.searchParams.get('state') ?? '',
    new URL(begun.url).searchParams.get('nonce') ?? '',
  ];
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(20);
    expect(rows[0]?.text).not.toContain(secret);
    expect(rows[0]?.text).not.toContain(Buffer.from(secret).toString('hex'));
  }
  expect(begun.url).not.toContain(provider.clientSecret);
});
