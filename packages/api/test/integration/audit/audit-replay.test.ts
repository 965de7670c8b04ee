/**
 * Replays an account's state from its audit log. Any sequence of calls that change the account and its credentials
 * gives the present state.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSignups, type SignupWorld } from '../support/signup-world.ts';

let world: SignupWorld;
let token: string;
let path: string;
let environmentId: number;
beforeAll(async () => {
  world = await startSignups();
  const email = world.newAddress();
  const made = (await world.complete(email, await world.startedCode(email))).json();
  ({ token, environment_id: environmentId } = made);
  path = `/v1/accounts/${made.account_id}`;
});
afterAll(() => world.close());

const call = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', rest: string, body?: object) =>
  world.api.call(method, `${path}${rest}`, { key: token, ...(body && { body }) });

interface Change {
  readonly attribute: string;
  readonly to: unknown;
  readonly redacted: boolean;
}
interface Entry {
  readonly object_type: string;
  readonly object_id: string;
  readonly changes: readonly Change[];
}
interface Page {
  readonly audit_logs: readonly { readonly id: number }[];
  readonly meta: { readonly next_cursor: number | null };
}
type Known = Record<string, unknown>;

/** By type and id, the objects in the log, without secrets. */
async function replayed(): Promise<Record<string, Known>> {
  const objects: Record<string, Known> = {};
  for (let cursor: number | null = 0; cursor !== null;) {
    const answer = await call('GET', `/audit_logs?sort_order=asc&limit=100&cursor=${cursor}`);
    const page = answer.json<Page>();
    for (const { id } of page.audit_logs) {
      const detail = await call('GET', `/audit_log/${id}`);
      const { audit_log: entry } = detail.json<{ audit_log: Entry }>();
      const object = (objects[`${entry.object_type} ${entry.object_id}`] ??= {});
      for (const { attribute, to, redacted } of entry.changes)
        if (!redacted) object[attribute] = to;
    }
    cursor = page.meta.next_cursor;
  }
  return objects;
}

const withoutNulls = (object: Known): Known =>
  Object.fromEntries(
    Object.entries(object).filter(([, value]) => value !== null && value !== undefined),
  );

async function account(): Promise<Known> {
  const shown = (await call('GET', '')).json().account;
  return {
    ...Object.fromEntries(
      [
        'name',
        'status',
        'data_center',
        'sandbox',
        'billing_rail',
        'currency',
        'timezone',
        'website',
        'billing_email',
        'two_factor_required',
        'owner_user_id',
        'address',
      ].map((field) => [field, shown[field]]),
    ),
    plan: shown.plan.id,
    products: (shown.products as { product: string; status: string }[])
      .filter(({ status }) => status === 'active')
      .map(({ product }) => product),
  };
}

async function credentials(): Promise<Record<string, Known>> {
  const list = await call('GET', '/api_credentials');
  const { api_credentials: rows } = list.json<{ api_credentials: Known[] }>();
  const fields = ['name', 'type', 'environment_id', 'scopes', 'ip_allowlist', 'read_only'];
  return Object.fromEntries(
    rows.map((row) => [
      `api_credential ${String(row['id'])}`,
      Object.fromEntries(
        [...fields, 'expires_at', 'revoked_at'].map((field) => [field, row[field]]),
      ),
    ]),
  );
}

const word = fc.constantFrom('Acme', 'Zeta', '50% <b>', 'Ünï');
const address = fc.record({
  company: fc.option(word),
  line1: word,
  line2: fc.option(word),
  city: word,
  country: fc.constant('DE'),
  postal_code: fc.constantFrom('10115', '20095'),
});
const step = fc.oneof(
  fc
    .record(
      {
        name: word,
        timezone: fc.constantFrom('Etc/UTC', 'Europe/Berlin'),
        website: fc.option(fc.constantFrom('https://a.example', 'https://b.example')),
        billing_email: fc.option(fc.constantFrom('a@example.com', 'b@example.com')),
      },
      { requiredKeys: ['name'] },
    )
    .map((given) => () => call('PUT', '', { account: given })),
  address.map((given) => () => call('POST', '/address', { address: given })),
  fc.constantFrom('enable', 'disable').map((way) => () => call('POST', `/2fa_required/${way}`)),
  fc
    .constantFrom('journeys', 'pipelines')
    .map((product) => () => call('POST', '/activate_product', { product })),
  fc
    .constantFrom('app', 'tracking', 'pipelines')
    .map(
      (type) => () =>
        call('POST', '/api_credentials', { name: type, type, environment_id: environmentId }),
    ),
  fc.tuple(fc.nat(), fc.constantFrom('rotate', 'revoke')).map(([which, change]) => async () => {
    const list = await call('GET', '/api_credentials');
    const { api_credentials: rows } = list.json<{
      api_credentials: { id: number; type: string }[];
    }>();
    // Not the one that all this is done with.
    const others = rows.filter(({ type }) => type !== 'service_account');
    const id = others[which % Math.max(1, others.length)]?.id;
    if (id === undefined) return undefined;
    return change === 'rotate'
      ? call('POST', `/api_credentials/${id}/rotate`)
      : call('DELETE', `/api_credentials/${id}`);
  }),
);

test('and neither more nor less', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
      for (const take of steps) {
        const answer = await take();
        expect([undefined, 200, 204, 409]).toContain(answer?.statusCode);
        world.api.clock.nowMs += 1_000;
      }
      const objects = await replayed();
      const accountId = path.split('/').at(-1)!;
      expect(withoutNulls(objects[`account ${accountId}`]!)).toEqual(withoutNulls(await account()));
      for (const [name, shown] of Object.entries(await credentials()))
        expect(withoutNulls(objects[name]!)).toMatchObject(withoutNulls(shown));
    }),
    { numRuns: 8 },
  );
});
