/** Security: no token makes or rotates a credential that may do more than itself. */
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertToken } from '../support/inserted-rows.ts';

/** Postgres' clock decides whether a token has expired. */
const EXPIRES_AT_MS = Date.now() + 3_600_000;

let api: ApiUnderTest;
let path: string;
beforeAll(async () => {
  api = await startApi();
  path = `/v1/accounts/${api.a.accountId}/api_credentials`;
});
afterAll(() => api.close());

const create = (body: object, key = api.a.token) => api.call('POST', path, { body, key });
const rotate = (id: number | string, key = api.a.token) =>
  api.call('POST', `${path}/${id}/rotate`, { key });
/** 200 if the token opens its account. */
const statusOf = async (key: string): Promise<number> =>
  (await api.call('GET', `/v1/accounts/${api.a.accountId}`, { key })).statusCode;
/** Puts a token with these limits in the place of the last one of this text. */
async function limitTo(token: string, limits: Parameters<typeof insertToken>[3]): Promise<void> {
  await sql`delete from api_credentials where secret_hash = ${hashSecret(token)}`.execute(
    api.database,
  );
  await insertToken(api.database, api.a.accountId, token, limits);
  // The state of the last one is remembered for a second.
  api.clock.nowMs += 1_000;
}

describe('one made', () => {
  test('with a scope that the maker has not is refused', async () => {
    const answer = await create({ name: 'a', type: 'service_account', scopes: ['partners:write'] });
    expectProblem(answer, 403, 'forbidden');
    await insertToken(api.database, api.a.accountId, 'sa_staff', { scopes: ['partners:write'] });
    const given = { name: 'a', type: 'service_account', scopes: ['partners:write'] };
    expect((await create(given, 'sa_staff')).statusCode).toBe(200);
  });

  test.each([
    ['with none', {}],
    ['from elsewhere too', { ip_allowlist: ['127.0.0.0/8', '10.0.0.1'] }],
    ['from around its own block', { ip_allowlist: ['127.0.0.0/7'] }],
    ['of the other family', { ip_allowlist: ['::ffff:127.0.0.0/104'] }],
    ['an app key with none', { type: 'app', environment_id: 0 }],
    ['a write key, which can have none', { type: 'pipelines', environment_id: 0 }],
  ])('by a token with addresses, %s, is refused', async (_what, given) => {
    await limitTo('sa_here', { ipAllowlist: ['127.0.0.0/8', '::1'] });
    const environment = 'environment_id' in given && { environment_id: api.a.environmentId };
    const body = { name: 'a', type: 'service_account', ...given, ...environment };
    expect(expectProblem(await create(body, 'sa_here'), 403, 'forbidden').message).toContain(
      'needs an ip_allowlist within its own',
    );
  });

  test.each([[['127.0.0.0/8', '::1/128']], [['127.0.0.1']], [['127.9.9.9/30', '::1']]])(
    'by a token with addresses, for %j within them, is taken',
    async (allowlist) => {
      await limitTo('sa_here', { ipAllowlist: ['127.0.0.0/8', '::1'] });
      const body = { name: 'a', type: 'service_account', ip_allowlist: allowlist };
      const made = await create(body, 'sa_here');
      expect(made.json().api_credential?.ip_allowlist, made.body).toEqual(allowlist);
    },
  );

  test.each(['service_account', 'app'])(
    'by a token that expires, a %s that does not, or later, is refused',
    async (type) => {
      const expiresAt = new Date(EXPIRES_AT_MS).toISOString();
      await limitTo('sa_until', { expiresAt });
      const environment = type === 'app' && { environment_id: api.a.environmentId };
      const given = { name: 'a', type, ...environment };
      const later = new Date(EXPIRES_AT_MS + 1).toISOString();
      for (const body of [given, { ...given, expires_at: later }]) {
        const { message } = expectProblem(await create(body, 'sa_until'), 403, 'forbidden');
        expect(message).toContain(`made with this token must not expire after it: ${expiresAt}`);
      }
      const made = await create({ ...given, expires_at: expiresAt }, 'sa_until');
      expect(made.json().api_credential?.expires_at, made.body).toBe(expiresAt);
    },
  );

  test.each([
    ['2030-01-01t00:00:00z', '2030-01-01T00:00:00.000Z'],
    ['2029-12-31T24:00:00Z', '2030-01-01T00:00:00.000Z'],
    ['20291231T235960,5Z', '2030-01-01T00:00:00.000Z'],
    ['2030-01-01T02:00+02:00', '2030-01-01T00:00:00.000Z'],
  ])('a time of an end is read as all times are: %s', async (expiresAt, shown) => {
    const made = await create({ name: 'a', type: 'service_account', expires_at: expiresAt });
    expect(made.json().api_credential?.expires_at, made.body).toBe(shown);
  });
});

describe('rotating', () => {
  test('a token does not come by scopes that it lacks by rotating one that has them', async () => {
    const scoped = (
      await create({ name: 'a', type: 'service_account', scopes: ['usage:write'] })
    ).json();
    const admin = (
      await create({ name: 'b', type: 'service_account', role: 'account_admin' })
    ).json();
    const { id } = scoped.api_credential;
    const refused = await rotate(id, admin.secret);
    expect(expectProblem(refused, 403, 'forbidden').message).toContain('usage:write');
    expect(await statusOf(scoped.secret)).toBe(200);
    // Nor by an access token that was narrowed.
    const scopes = ['usage:write', 'partners:write'];
    await insertToken(api.database, api.a.accountId, 'sa_live_of_both', { scopes });
    const narrowed = await api.call('POST', '/v1/service_accounts/oauth/token', {
      body: {
        grant_type: 'client_credentials',
        client_secret: 'sa_live_of_both',
        scope: 'partners:write',
      },
    });
    const key = narrowed.json().access_token;
    expectProblem(await rotate(id, key), 403, 'forbidden');
    expect((await rotate(id)).statusCode).toBe(200);
  });

  test('a token with an address list or an expiry can rotate itself, but not an unlimited credential', async () => {
    const free = (await create({ name: 'a', type: 'service_account' })).json();
    const app = (
      await create({ name: 'b', type: 'app', environment_id: api.a.environmentId })
    ).json();
    const expiresAt = new Date(EXPIRES_AT_MS).toISOString();
    for (const limits of [{ ipAllowlist: ['127.0.0.0/8'] }, { expiresAt }]) {
      await limitTo('sa_limited', limits);
      for (const { api_credential: each } of [free, app]) {
        expectProblem(await rotate(each.id, 'sa_limited'), 403, 'forbidden');
      }
      const { rows } = await sql<{ id: string }>`
        select credential_id as id from api_credentials where secret_hash = ${hashSecret('sa_limited')}`.execute(
        api.database,
      );
      expect((await rotate(rows[0]!.id, 'sa_limited')).statusCode).toBe(200);
    }
    expect(await statusOf(free.secret)).toBe(200);
  });
});
