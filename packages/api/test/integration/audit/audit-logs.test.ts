/** An entry of the audit log over the API. Also its options and its readers (`account-billing.md` §4, Audit logs). */
import { hashAuditEntry } from '@sluice/database/changes/record-change';
import { AUDIT_OBJECTS } from '@sluice/domain/accounts/audit-registry';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertToken } from '../support/inserted-rows.ts';
import { CHANGE, ENTRIES, recordEntries, START_MS } from '../support/audit-log-world.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
  await recordEntries(api);
});
afterAll(() => api.close());

const path = () => `/v1/accounts/${api.a.accountId}`;
const get = (rest: string, key = api.a.token) => api.call('GET', `${path()}${rest}`, { key });

describe('an entry', () => {
  test('has the changed attributes, the actor and the request id', async () => {
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
          credential_id: null,
          environment_id: null,
          changed_attributes: ['name'],
          request_id: 'req_1',
        },
      ],
      meta: { next_cursor: 1, has_more: true, limit: 1 },
    });
  });

  test('in detail has the old and new values, and the hashes of the chain', async () => {
    const { audit_log: shown } = (await get('/audit_log/1')).json();
    expect(shown).toMatchObject({
      id: 1,
      changes: [{ attribute: 'name', from: 'A', to: 'B', redacted: false }],
      context: { location: null, credential_id: null, session_id: null, run_id: null },
      prev_hash: '0'.repeat(64),
    });
    const { audit_log: next } = (await get('/audit_log/2')).json();
    expect(next.prev_hash).toBe(shown.hash);
    // From the shown entry alone, like a reader who has kept it.
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

  test('shows the current name and address of its actor', async () => {
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

test('the given clock has advanced one second for each entry', () => {
  expect(api.clock.nowMs).toBe(START_MS + ENTRIES.length * 1_000);
});
