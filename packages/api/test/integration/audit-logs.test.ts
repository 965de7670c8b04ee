/** The audit log over the API: each rule of `account-billing.md`, Audit logs. */
import { hashAuditEntry } from '@sluice/database/audit-logs';
import { AUDIT_OBJECTS } from '@sluice/domain/audit-registry';
import fc from 'fast-check';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../error-shapes.ts';
import { insertToken, startApi, type ApiUnderTest } from './api-under-test.ts';
import { CHANGE, record } from './audit-log-world.ts';

let api: ApiUnderTest;
const START_MS = Date.parse('2026-03-01T12:00:00.000Z');
/** What `beforeAll` records, in order; entry n is ENTRIES[n - 1]. */
const ENTRIES = [
  { change: {}, origin: {} },
  { change: { after: { website: 'a' } }, origin: { ipAddr: '::ffff:10.0.11.2' } },
  {
    change: { objectType: 'user', objectId: '1', before: null, after: { email: 'a' } },
    origin: {},
  },
  {
    change: { objectType: 'user', objectId: '1', before: { email: 'a' }, after: null },
    origin: { actor: { type: 'user', userId: 8 } },
  },
  {
    change: { objectType: 'user', objectId: '10', before: { role: 'member' }, after: {} },
    origin: { ipAddr: '2001:DB8::1' },
  },
  {
    change: { objectType: 'environment', objectId: '1', after: { webhook_signing_key: 'secret' } },
    origin: { actor: { type: 'service_account', serviceAccountId: 99 }, ipAddr: null },
  },
  {
    change: { after: { name: '50%' } },
    origin: { actor: { type: 'system' }, ipAddr: '100.1.1.1' },
  },
] as const;

beforeAll(async () => {
  api = await startApi();
  for (const { change, origin } of ENTRIES) {
    await record(api, change, origin);
    api.clock.nowMs += 1_000;
  }
});
afterAll(() => api.close());

const path = () => `/v1/accounts/${api.a.accountId}`;
const get = (rest: string, key = api.a.token) => api.call('GET', `${path()}${rest}`, { key });
async function ids(query: string): Promise<number[]> {
  const answer = await get(`/audit_logs${query}`);
  expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
  return answer.json().audit_logs.map(({ id }: { id: number }) => id);
}

describe('an entry', () => {
  test('says what changed, who did it and by which call', async () => {
    const answer = await get('/audit_logs?sort_order=asc&limit=1');
    expect(answer.json()).toEqual({
      audit_logs: [
        {
          id: 1,
          occurred_at: '2026-03-01T12:00:00.000Z',
          action: 'updated',
          object_type: 'account',
          object_id: 'the account',
          object_name: 'Acme',
          actor: { type: 'user', user_id: 7, service_account_id: null, name: null, email: null },
          ip_addr: '10.0.1.2',
          user_agent: 'curl/8',
          environment_id: null,
          changed_attributes: ['name'],
          request_id: 'req_1',
        },
      ],
      meta: { next_cursor: 1, has_more: true, limit: 1 },
    });
  });

  test('in detail has what changed from what to what, and the hashes of the chain', async () => {
    const { audit_log: shown } = (await get('/audit_log/1')).json();
    expect(shown).toMatchObject({
      id: 1,
      changes: [{ attribute: 'name', from: 'A', to: 'B', redacted: false }],
      context: { location: null, credential_id: null, run_id: null },
      prev_hash: '0'.repeat(64),
    });
    const { audit_log: next } = (await get('/audit_log/2')).json();
    expect(next.prev_hash).toBe(shown.hash);
    // From what is shown alone, as somebody does who has kept it.
    const hash = hashAuditEntry(
      {
        accountId: api.a.accountId,
        auditLogId: shown.id,
        occurredAtMs: Date.parse(shown.occurred_at),
        action: shown.action,
        objectType: shown.object_type,
        objectId: shown.object_id,
        objectName: shown.object_name,
        environmentId: shown.environment_id,
        actorType: shown.actor.type,
        userId: shown.actor.user_id,
        serviceAccountId: shown.actor.service_account_id,
        credentialId: shown.context.credential_id,
        ipAddr: shown.ip_addr,
        userAgent: shown.user_agent,
        requestId: shown.request_id,
        runId: shown.context.run_id,
        changes: shown.changes,
      },
      shown.prev_hash,
    );
    expect(hash).toBe(shown.hash);
  });

  test('never shows a secret', async () => {
    const answer = await get('/audit_log/6');
    expect(answer.json().audit_log.changes).toContainEqual({
      attribute: 'webhook_signing_key',
      from: null,
      to: '[redacted]',
      redacted: true,
    });
    expect(answer.body).not.toContain('"secret"');
  });

  test('that is not there is 404, as is one that no account has', async () => {
    for (const id of ['8', '2147483647', '2147483648', '0', 'x', '-1', '1.0'])
      expectProblem(await get(`/audit_log/${id}`), 404, 'not_found');
  });

  test('tells the name and address of who acted as they are now', async () => {
    const { accountId } = api.a;
    await sql`
      insert into users (account_id, user_id, email, first_name, last_name, role, status)
      values (${accountId}, 8, 'ada@example.com', 'Ada', 'Lovelace', 'member', 'active')`.execute(
      api.database,
    );
    const { audit_log: shown } = (await get('/audit_log/4')).json();
    expect(shown.actor).toEqual({
      type: 'user',
      user_id: 8,
      service_account_id: null,
      name: 'Ada Lovelace',
      email: 'ada@example.com',
    });
    await sql`update users set first_name = 'A.' where account_id = ${accountId} and user_id = 8`.execute(
      api.database,
    );
    const { audit_logs: listed } = (await get('/audit_logs?user_id=8')).json();
    expect(listed[0].actor.name).toBe('A. Lovelace');
  });
});

describe('the list', () => {
  test('has the newest first, or the oldest, and 20 unless told', async () => {
    expect(await ids('')).toEqual([7, 6, 5, 4, 3, 2, 1]);
    expect(await ids('?sort_order=asc')).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect((await get('/audit_logs')).json().meta).toEqual({
      next_cursor: null,
      has_more: false,
      limit: 20,
    });
  });

  test('goes on after a cursor in the order asked for', async () => {
    expect(await ids('?cursor=4')).toEqual([3, 2, 1]);
    expect(await ids('?cursor=4&sort_order=asc')).toEqual([5, 6, 7]);
    expect(await ids('?cursor=0')).toEqual([]);
    expect(await ids('?cursor=2147483647')).toEqual([7, 6, 5, 4, 3, 2, 1]);
  });

  test.each(['asc', 'desc'])(
    'page by page in any size shows every entry once: %s',
    async (order) => {
      const all = await ids(`?sort_order=${order}`);
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 8 }), async (limit) => {
          const seen: number[] = [];
          let cursor: number | null = null;
          do {
            const start: string = cursor === null ? '' : `&cursor=${cursor}`;
            const answer = await get(`/audit_logs?limit=${limit}&sort_order=${order}${start}`);
            const { audit_logs: page, meta } = answer.json();
            expect(page.length).toBeLessThanOrEqual(limit);
            expect(meta.has_more).toBe(meta.next_cursor !== null);
            seen.push(...page.map(({ id }: { id: number }) => id));
            cursor = meta.next_cursor;
          } while (cursor !== null);
          expect(seen).toEqual(all);
        }),
        { numRuns: 8 },
      );
    },
  );

  test.each([
    ['user_id=8', [4]],
    ['user_id=7', [5, 3, 2, 1]],
    ['service_account_id=99', [6]],
    ['ip_addr=10.', [4, 3, 2, 1]],
    ['ip_addr=10.0.1', [4, 3, 2, 1]],
    ['ip_addr=10.0.1.', [4, 3, 1]],
    ['ip_addr=10.0.1.2', [4, 3, 1]],
    ['ip_addr=2001:DB8', [5]],
    ['ip_addr=0.0', []],
    ['ip_addr=%2525', []],
    ['ip_addr=10%25', []],
    ['ip_addr=1__0', []],
    ['ip_addr=10\\', []],
    ['ip_addr=', [7, 6, 5, 4, 3, 2, 1]],
    ['object_type=user', [5, 4, 3]],
    ['object_type=user&object_id=1', [4, 3]],
    ['object_type=user&object_id=%25', []],
    ['object_type=account&object_id=1', []],
    ['object_type=nothing', []],
    ['object_type=user&action=created', [3]],
    ['object_type=user&object_id=1&action=deleted', [4]],
    ['object_type=account&action=created', []],
    ['object_type=user&attribute_name=email', [4, 3]],
    ['object_type=account&attribute_name=name&sort_order=asc', [1, 2, 7]],
    ['object_type=account&attribute_name=website', [2]],
    ['object_type=account&attribute_name=nothing', []],
    ['start_time=2026-03-01T12:00:05Z', [7, 6]],
    ['end_time=2026-03-01T12:00:01.000Z', [2, 1]],
    ['end_time=2026-03-01T12:00:00.999Z', [1]],
    ['start_time=2026-03-01T12:00:02Z&end_time=2026-03-01T12:00:02Z', [3]],
    ['start_time=2026-03-01T14:00:05%2B02:00', [7, 6]],
    ['start_time=2026-03-01T14:00:05+02:00', [7, 6]],
    ['start_time=2026-03-01T12:00:05.0001Z', [7]],
    ['start_time=2027-01-01T00:00:00Z', []],
    ['end_time=2025-01-01T00:00:00Z', []],
    ['start_time=2026-03-01T12:00:02Z&user_id=7&ip_addr=10.&limit=1', [3]],
    ['object_type=user&cursor=5&user_id=7', [3]],
  ])('%s', async (query, expected) => {
    expect(await ids(`?${query}`)).toEqual(expected);
  });

  test('any filters together find what each of them finds', async () => {
    const one = (name: string, ...values: string[]) =>
      fc.option(
        fc.constantFrom(...values).map((value) => `${name}=${value}`),
        { nil: '' },
      );
    const filters = fc.tuple(
      one('user_id', '7', '8'),
      one('ip_addr', '10.', '2001', '10.0.1.2'),
      one('start_time', '2026-03-01T12:00:01Z', '2026-03-01T12:00:04Z'),
      one('end_time', '2026-03-01T12:00:05Z', '2026-03-01T12:00:06Z'),
      fc.constantFrom('object_type=user', 'object_type=account'),
      one('object_id', '1', 'the account'),
      one('action', 'created', 'updated', 'deleted'),
      one('attribute_name', 'name', 'email'),
    );
    await fc.assert(
      fc.asyncProperty(filters, async (parts) => {
        const given = parts.filter((part) => part !== '');
        const type = given.find((part) => part.startsWith('object_type')) as string;
        const each = await Promise.all(
          given.map((part) =>
            ids(`?${/^(object_id|action|attr)/.test(part) ? `${type}&` : ''}${part}`),
          ),
        );
        const common = each.reduce((some, others) => some.filter((id) => others.includes(id)));
        expect(await ids(`?${given.join('&')}`)).toEqual(common);
      }),
      { numRuns: 40 },
    );
  });

  test.each([
    ['limit=0', 422, 'limit'],
    ['limit=-1', 422, 'limit'],
    ['limit=101', 422, 'limit'],
    ['limit=2147483648', 422, 'limit'],
    ['limit=ten', 400, 'limit'],
    ['limit=1.5', 400, 'limit'],
    ['limit=1e1', 400, 'limit'],
    ['limit=1&limit=2', 400, 'limit'],
    ['limit=99999999999999999999', 400, 'limit'],
    ['sort_order=up', 422, 'sort_order'],
    ['sort_order=DESC', 422, 'sort_order'],
    ['cursor=x', 400, 'cursor'],
    ['cursor=-1', 422, 'cursor'],
    ['cursor=2147483648', 422, 'cursor'],
    ['user_id=x', 400, 'user_id'],
    ['user_id=2147483648', 422, 'user_id'],
    ['service_account_id=1.0', 400, 'service_account_id'],
    ['service_account_id=0', 422, 'service_account_id'],
    ['start_time=yesterday', 400, 'start_time'],
    ['start_time=2026-02-30T00:00:00Z', 400, 'start_time'],
    ['end_time=2026-03-01', 400, 'end_time'],
    ['end_time=1772366400', 400, 'end_time'],
    ['start_time=2026-03-02T00:00:00Z&end_time=2026-03-01T00:00:00Z', 422, 'start_time'],
    ['object_id=1', 422, 'object_id'],
    ['object_id=1&action=created', 422, 'object_id'],
    ['action=created', 422, 'action'],
    ['action=created&object_type=', 422, 'action'],
    ['attribute_name=name', 422, 'attribute_name'],
    ['object_type=user&action=removed', 422, 'action'],
    ['object_type=a%00b', 422, 'object_type'],
    [`object_type=${'a'.repeat(201)}`, 422, 'object_type'],
    ['ip_addr=1&ip_addr=2', 400, 'ip_addr'],
  ] as const)('%s is %i and names %s', async (query, status, field) => {
    const answer = await get(`/audit_logs?${query}`);
    const problem = expectProblem(
      answer,
      status,
      status === 400 ? 'invalid_request' : 'validation_failed',
    );
    expect(problem.errors).toContainEqual(
      expect.objectContaining({
        field,
        source: expect.objectContaining({ parameter: field }),
      }),
    );
  });

  test('each rule between fields names every field that it refuses', async () => {
    const { errors } = (await get('/audit_logs?action=created&attribute_name=a')).json();
    expect(errors.map(({ field }: { field: string }) => field)).toEqual([
      'action',
      'attribute_name',
    ]);
  });
});

test('the options are the fields that entries are written by', async () => {
  const answer = await get('/audit_logs/field_options');
  expect(answer.json().actions).toEqual(['created', 'updated', 'deleted']);
  const types = answer.json().object_types as { object_type: string; fields: string[] }[];
  expect(Object.fromEntries(types.map((each) => [each.object_type, each.fields]))).toEqual(
    Object.fromEntries(
      Object.entries(AUDIT_OBJECTS).map(([type, { fields }]) => [type, Object.keys(fields)]),
    ),
  );
  const option = types.find((each) => each.object_type === CHANGE.objectType);
  expect(option?.fields).toEqual(
    expect.arrayContaining((await get('/audit_log/1')).json().audit_log.changed_attributes),
  );
});

test.each(['/audit_logs', '/audit_log/1', '/audit_logs/field_options'])(
  '%s is for administrators, who may be read-only',
  async (rest) => {
    const tokens = { member: 'sa_m', billing_admin: 'sa_b', reader: 'sa_r' };
    for (const [name, token] of Object.entries(tokens)) {
      const given = name === 'reader' ? { isReadOnly: true } : { role: name as 'member' };
      const mine = `${token}${rest.replaceAll('/', '_')}`;
      await insertToken(api.database, api.a.accountId, mine, given);
      const answer = await get(rest, mine);
      expect([name, answer.statusCode]).toEqual([name, name === 'reader' ? 200 : 403]);
    }
  },
);

test('the entries of one account are nowhere in the log of another', async () => {
  const answer = await api.call('GET', `/v1/accounts/${api.b.accountId}/audit_logs`, {
    key: api.b.token,
  });
  expect(answer.json().audit_logs).toEqual([]);
});

test('times are those of the clock that was handed in', () => {
  expect(api.clock.nowMs).toBe(START_MS + ENTRIES.length * 1_000);
});
