import { REPORTING_EVENT_TYPES } from '@sluice/domain/delivery/reporting-event';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  await sql`delete from webhooks`.execute(api.database);
  api.woken.length = 0;
});

const PATH = '/v1/reporting_webhooks';
const CONFIGURATION = {
  name: 'Orders',
  endpoint: 'https://example.com/in?a=1',
  events: ['customer_subscribed'],
};

async function make(changes: Record<string, unknown> = {}): Promise<{ id: number }> {
  const answer = await api.call('POST', PATH, { body: { ...CONFIGURATION, ...changes } });
  expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
  return answer.json();
}

describe('POST', () => {
  test('answers 200 with the configuration, its defaults, an id and a type', async () => {
    const answer = await api.call('POST', PATH, { body: CONFIGURATION });
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual({
      ...CONFIGURATION,
      id: expect.any(Number),
      type: 'webhook',
      disabled: false,
      full_resolution: false,
      with_content: false,
      standard_webhooks: false,
      signing: 'sluice',
      disable_after_days: null,
      rate_limit_per_second: null,
      window_max: null,
      ordering: 'person',
      headers: {},
      attribute_filters: null,
      client_certificate: null,
      certificate_authority: null,
      oauth2: null,
      event_names: null,
      with_imports: false,
      with_late: false,
      with_person_attributes: false,
    });
  });

  test('keeps every field that is given', async () => {
    const given = {
      ...CONFIGURATION,
      disabled: true,
      full_resolution: true,
      with_content: true,
      standard_webhooks: true,
      event_names: ['order_placed', 'order_shipped'],
      with_imports: true,
      with_late: true,
      with_person_attributes: true,
    };
    const { id } = await make(given);
    expect((await api.call('GET', `${PATH}/${id}`)).json()).toMatchObject({
      ...given,
      id,
      type: 'webhook',
    });
  });

  test('takes all 72 event types, and each only once', async () => {
    const { id } = await make({ events: [...REPORTING_EVENT_TYPES, ...REPORTING_EVENT_TYPES] });
    expect((await api.call('GET', `${PATH}/${id}`)).json().events).toEqual(REPORTING_EVENT_TYPES);
  });

  test('ignores fields that it does not know, also id and type', async () => {
    const { id } = await make({
      id: 7_000_000,
      type: 'js',
      colour: 'red',
      ['__proto__']: { admin: true },
    });
    expect(id).not.toBe(7_000_000);
  });
});

describe('GET', () => {
  test('lists the webhooks oldest first, and an empty list before the first one', async () => {
    expect((await api.call('GET', PATH)).json()).toEqual({ reporting_webhooks: [] });
    const made = [await make({ name: 'first' }), await make({ name: 'second' })];
    expect((await api.call('GET', PATH)).json()).toEqual({ reporting_webhooks: made });
  });

  test('of one id answers its configuration', async () => {
    const made = await make();
    const answer = await api.call('GET', `${PATH}/${made.id}`);
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual(made);
  });
});

describe('PUT', () => {
  test('changes the given fields and keeps the rest', async () => {
    const made = await make();
    for (const change of [
      { disabled: true },
      { full_resolution: true },
      { with_content: true },
      { standard_webhooks: true },
      { event_names: ['order_placed'] },
      { event_names: null },
      { with_imports: true },
      { with_late: true },
      { with_person_attributes: true },
      { name: 'New name' },
      { endpoint: 'http://127.0.0.1:9999/' },
      { events: ['email_sent', 'email_opened'] },
    ]) {
      const before = (await api.call('GET', `${PATH}/${made.id}`)).json();
      const answer = await api.call('PUT', `${PATH}/${made.id}`, { body: change });
      expect(answer.statusCode).toBe(200);
      expect(answer.json()).toEqual({ ...before, ...change });
      expect((await api.call('GET', `${PATH}/${made.id}`)).json()).toEqual({
        ...before,
        ...change,
      });
    }
  });

  test('with an empty body keeps the webhook as it is', async () => {
    const made = await make();
    expect((await api.call('PUT', `${PATH}/${made.id}`, { body: {} })).json()).toEqual(made);
  });

  test('refuses a malformed field with 400 and keeps the webhook as it is', async () => {
    const made = await make();
    for (const change of [
      { endpoint: 'nowhere' },
      { events: [] },
      { events: ['nothing'] },
      { name: '' },
      { disabled: 0 },
    ]) {
      const answer = await api.call('PUT', `${PATH}/${made.id}`, {
        body: { ...change, with_content: true },
      });
      expectProblem(answer, 400, 'invalid_request');
    }
    expect((await api.call('GET', `${PATH}/${made.id}`)).json()).toEqual(made);
  });

  describe('with deliveries blocked', () => {
    const makeBlocked = async () => {
      const { id } = await make();
      await sql`
        update lanes set last_sequence = 5, state = 'failing', next_probe_at = ${new Date(api.clock.nowMs + 3_600_000)}
        where environment_id = ${api.a.environmentId} and webhook_id = ${id}`.execute(api.database);
      const nextProbe = async () => {
        const { rows } = await sql<{ at: Date }>`
          select next_probe_at as at from lanes
          where environment_id = ${api.a.environmentId} and webhook_id = ${id}`.execute(
          api.database,
        );
        return rows[0]!.at.getTime() - api.clock.nowMs;
      };
      return { id, lane: { environmentId: api.a.environmentId, webhookId: id }, nextProbe };
    };

    test('a changed endpoint is tried at once', async () => {
      const { id, lane, nextProbe } = await makeBlocked();
      await api.call('PUT', `${PATH}/${id}`, { body: { endpoint: 'https://example.com/mended' } });
      expect(api.woken).toEqual([lane]);
      expect(await nextProbe()).toBe(0);
    });

    test.each([
      { headers: { authorization: 'Bearer right' } },
      { standard_webhooks: true },
      { headers: { authorization: 'Bearer right' }, endpoint: CONFIGURATION.endpoint },
    ])('a change of the request causes an attempt at once: %j', async (body) => {
      const { id, lane, nextProbe } = await makeBlocked();
      await api.call('PUT', `${PATH}/${id}`, { body });
      expect(api.woken).toContainEqual(lane);
      expect(await nextProbe()).toBe(0);
    });

    test('a configuration that is written back as it is changes no time, headers too', async () => {
      const { id, nextProbe } = await makeBlocked();
      const headers = { authorization: 'Bearer a', 'x-tenant': 'b' };
      const inOtherCase = { headers: { 'X-Tenant': 'b', Authorization: 'Bearer a' } };
      await api.call('PUT', `${PATH}/${id}`, { body: { headers } });
      await sql`
        update lanes set next_probe_at = ${new Date(api.clock.nowMs + 3_600_000)}
         where environment_id = ${api.a.environmentId} and webhook_id = ${id}`.execute(
        api.database,
      );
      const asItIs = (await api.call('GET', `${PATH}/${id}`)).json();
      // The values of headers are not shown, so the shown fields are written back without them.
      const { headers: _, ...others } = asItIs;
      for (const body of [others, inOtherCase]) {
        const answer = await api.call('PUT', `${PATH}/${id}`, { body });
        expect(answer.json()).toEqual(asItIs);
      }
      expect(await nextProbe()).toBe(3_600_000);
      // The next ones are others.
      await api.call('PUT', `${PATH}/${id}`, { body: { headers: {} } });
      expect(await nextProbe()).toBe(0);
    });

    test.each([
      ['POST', '', { overlap_seconds: 0 }],
      ['POST', '', {}],
    ] as const)('a changed secret is tried at once: %s %j', async (method, path, body) => {
      const { id, lane, nextProbe } = await makeBlocked();
      await api.call(method, `${PATH}/${id}/secrets${path}`, { body });
      expect(api.woken).toEqual([lane]);
      expect(await nextProbe()).toBe(0);
    });

    test('disabling causes no attempt, and enabling causes one at once', async () => {
      const { id, lane, nextProbe } = await makeBlocked();
      await api.call('PUT', `${PATH}/${id}`, { body: { disabled: true } });
      expect(api.woken).toEqual([]);
      expect(await nextProbe()).toBe(3_600_000);
      await api.call('PUT', `${PATH}/${id}`, { body: { disabled: false } });
      expect(api.woken).toEqual([lane]);
      expect(await nextProbe()).toBe(0);
    });

    test('the change is kept and answered also when the broker is away', async () => {
      const { id } = await makeBlocked();
      api.broker.isAway = true;
      const answer = await api.call('PUT', `${PATH}/${id}`, {
        body: { endpoint: 'https://example.com/mended' },
      });
      api.broker.isAway = false;
      expect(answer.statusCode).toBe(200);
      expect((await api.call('GET', `${PATH}/${id}`)).json()).toMatchObject({
        endpoint: 'https://example.com/mended',
      });
    });
  });
});

describe('DELETE', () => {
  test('answers 200 with no body, and the webhook is gone', async () => {
    const { id } = await make();
    const answer = await api.call('DELETE', `${PATH}/${id}`);
    expect(answer.statusCode).toBe(200);
    expect(answer.body).toBe('');
    expect(answer.headers['content-type']).toBeUndefined();
    expectProblem(await api.call('GET', `${PATH}/${id}`), 404, 'not_found');
    expectProblem(await api.call('DELETE', `${PATH}/${id}`), 404, 'not_found');
    expect((await api.call('GET', PATH)).json()).toEqual({ reporting_webhooks: [] });
  });

  test('takes a JSON content type without a body, as a real client sends it', async () => {
    const { id } = await make();
    const answer = await api.call('DELETE', `${PATH}/${id}`, {
      headers: { 'content-type': 'application/json' },
    });
    expect(answer.statusCode).toBe(200);
  });
});

test.each([
  '1',
  '0',
  '-1',
  '1.5',
  '2147483647',
  '2147483648',
  '99999999999999999999',
  'abc',
  '1e3',
  '0x1',
  '%00',
  '%20',
  '01',
  'null',
])('the unknown id %s is 404 for every method', async (id) => {
  for (const [method, body] of [['GET'], ['PUT', { disabled: true }], ['DELETE']] as const) {
    expectProblem(await api.call(method, `${PATH}/${id}`, { body }), 404, 'not_found');
  }
  expectProblem(await api.call('GET', `${PATH}/${id}/deliveries`), 404, 'not_found');
});

test('the creation, change and deletion of a webhook are in the audit log, with the key and the call', async () => {
  const { id } = await make();
  const headers = { 'user-agent': 'curl/8', 'x-request-id': 'req-of-change' };
  await api.call('PUT', `${PATH}/${id}`, { body: { disabled: true }, headers });
  await api.call('PUT', `${PATH}/${id}`, { body: { disabled: true } });
  await api.call('DELETE', `${PATH}/${id}`);

  const { rows } = await sql`
    select action, changed_attributes as attributes, environment_id as "environmentId", object_name as name,
           actor_type as actor, c.kind = 'app' as "isKey", host(ip_addr::inet) as address
      from audit_logs l join api_credentials c using (environment_id, credential_id)
     where object_type = 'reporting_webhook' and object_id = ${String(id)}
     order by audit_log_id`.execute(api.database);
  const common = {
    environmentId: api.a.environmentId,
    name: 'Orders',
    actor: 'service_account',
    isKey: true,
    address: '127.0.0.1',
  };
  const all = [
    'name',
    'endpoint',
    'events',
    'disabled',
    'full_resolution',
    'with_content',
    'standard_webhooks',
    'signing',
    'ordering',
    'with_imports',
    'with_late',
    'with_person_attributes',
  ];
  expect(rows).toEqual([
    { ...common, action: 'created', attributes: all },
    { ...common, action: 'updated', attributes: ['disabled'] },
    { ...common, action: 'deleted', attributes: all },
  ]);
  const { rows: calls } = await sql`
    select user_agent as agent, request_id as request from audit_logs
     where object_id = ${String(id)} and action = 'updated'`.execute(api.database);
  expect(calls).toEqual([{ agent: 'curl/8', request: 'req-of-change' }]);
});
