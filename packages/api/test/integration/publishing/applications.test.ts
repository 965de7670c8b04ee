/** Applications: their owners, the settings of an endpoint, and the reach of their portal. */
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { portalOf } from '../support/portal-world.ts';

let api: ApiUnderTest;
let world: ReturnType<typeof portalOf>;
let count = 0;
let id: string;
beforeAll(async () => {
  api = await startApi();
  world = portalOf(api);
});
beforeEach(async () => {
  id = `acme-${++count}`;
  await api.call('POST', '/v1/applications', { body: { id, name: 'Acme' } });
});
afterAll(() => api.close());

interface Endpoint {
  readonly id: number;
  readonly secret: string;
  readonly [field: string]: unknown;
}
const pathOf = (application: string, more = '') =>
  `/v1/applications/${encodeURIComponent(application)}${more}`;
async function makeEndpoint(application: string, more: object = {}): Promise<Endpoint> {
  const answer = await api.call('POST', pathOf(application, '/endpoints'), {
    body: { name: 'Orders', endpoint: 'https://acme.example/hook', ...more },
  });
  expect(answer.statusCode, answer.body).toBe(200);
  return answer.json<Endpoint>();
}

test('an endpoint has its own secret, shows its settings, and is listed only in its application', async () => {
  const one = await makeEndpoint(id, { event_names: ['paid'], rate_limit_per_second: 5 });
  const other = await makeEndpoint(id);
  expect(one).toMatchObject({
    events: ['message'],
    application_id: id,
    event_names: ['paid'],
    rate_limit_per_second: 5,
    full_resolution: false,
  });
  expect(one.secret).not.toBe(other.secret);
  const listed = (await api.call('GET', pathOf(id, '/endpoints'))).json<{
    endpoints: Endpoint[];
  }>();
  expect(listed.endpoints.map((each) => each.id)).toEqual([one.id, other.id]);
  expect(JSON.stringify(listed)).not.toContain(one.secret);
  const webhooks = (await api.call('GET', '/v1/reporting_webhooks')).json<{
    reporting_webhooks: Endpoint[];
  }>();
  expect(webhooks.reporting_webhooks.map((each) => each.id)).not.toContain(one.id);
  expect((await api.call('GET', `/v1/reporting_webhooks/${one.id}`)).statusCode).toBe(200);
});

test('an endpoint refuses other events and contents by field name, and accepts other changes', async () => {
  const { id: webhookId } = await makeEndpoint(id);
  const change = (body: object) => api.call('PUT', `/v1/reporting_webhooks/${webhookId}`, { body });
  for (const [field, body] of Object.entries({
    events: { events: ['*'] },
    with_content: { with_content: true },
    with_person_attributes: { with_person_attributes: true },
  })) {
    const { errors } = expectProblem(await change(body), 400, 'invalid_request');
    expect(errors.map((error) => error.field)).toEqual([field]);
  }
  const shown = (await api.call('GET', `/v1/reporting_webhooks/${webhookId}`)).json<object>();
  expect((await change({ ...shown, headers: {}, name: 'New' })).json()).toMatchObject({
    name: 'New',
    events: ['message'],
  });
  const { rows } = await sql<{ events: string[] }>`
    select events from webhooks where webhook_id = ${webhookId}`.execute(api.database);
  expect(rows).toEqual([{ events: ['application_message'] }]);
});

test('endpoints do not count among the webhooks of the workspace, and are bounded by themselves', async () => {
  const made = await Promise.all(Array.from({ length: 50 }, () => makeEndpoint(id)));
  expect(new Set(made.map((each) => each.id)).size).toBe(50);
  const body = { name: 'Orders', endpoint: 'https://acme.example/hook' };
  expectProblem(await api.call('POST', pathOf(id, '/endpoints'), { body }), 409, 'limit_reached');
  const pages: number[] = [];
  for (let start = ''; ;) {
    const page = (await api.call('GET', pathOf(id, `/endpoints?limit=20&start=${start}`))).json<{
      endpoints: Endpoint[];
      next: string;
    }>();
    pages.push(...page.endpoints.map((each) => each.id));
    start = page.next;
    if (start === '') break;
  }
  expect(pages).toEqual(made.map((each) => each.id).toSorted((one, other) => one - other));
});

test('the same call with the same key makes one endpoint and returns the same secret', async () => {
  const call = () =>
    api.call('POST', pathOf(id, '/endpoints'), {
      headers: { 'idempotency-key': `key-${id}` },
      body: { name: 'Orders', endpoint: 'https://acme.example/hook' },
    });
  const [one, other] = [(await call()).json<Endpoint>(), (await call()).json<Endpoint>()];
  expect(one).toEqual(other);
  const { endpoints } = (await api.call('GET', pathOf(id, '/endpoints'))).json<{
    endpoints: Endpoint[];
  }>();
  expect(endpoints).toHaveLength(1);
});

test('another workspace cannot see, change or fill an application', async () => {
  const key = api.b.key;
  const body = { name: 'x', endpoint: 'https://evil.example/hook' };
  expectProblem(await api.call('GET', pathOf(id), { key }), 404, 'not_found');
  expectProblem(await api.call('PUT', pathOf(id), { key, body: { name: 'x' } }), 404, 'not_found');
  expectProblem(await api.call('DELETE', pathOf(id), { key }), 404, 'not_found');
  expectProblem(await api.call('GET', pathOf(id, '/endpoints'), { key }), 404, 'not_found');
  expectProblem(await api.call('POST', pathOf(id, '/endpoints'), { key, body }), 404, 'not_found');
  expect((await api.call('GET', '/v1/applications', { key })).json()).toEqual({
    applications: [],
    next: '',
  });
  // The same id is theirs to use.
  expect(
    (await api.call('POST', '/v1/applications', { key, body: { id, name: 'Ours' } })).statusCode,
  ).toBe(200);
  expect((await api.call('GET', pathOf(id))).json()).toMatchObject({ name: 'Acme' });
  expect((await api.call('DELETE', pathOf(id), { key })).statusCode).toBe(200);
});

test('refuses with the name of the field', async () => {
  const refused = async (body: unknown) =>
    expectProblem(
      await api.call('POST', '/v1/applications', { body }),
      400,
      'invalid_request',
    ).errors.map((error) => error.field);
  expect(await refused({ id: 'é'.repeat(76), name: 'x' })).toEqual(['id']);
  expect(await refused({ id: ' ', name: 'x' })).toEqual(['id']);
  // A URL parser makes `/v1/endpoints` of `/v1/applications/../endpoints`, also if the dots are percent-encoded.
  expect(await refused({ id: '.', name: 'x' })).toEqual(['id']);
  expect(await refused({ id: ' .. ', name: 'x' })).toEqual(['id']);
  expect(await refused({ id: 'x' })).toEqual(['name']);
  expect(await refused({ name: 'x', more: 1 })).toEqual(['more']);
  expectProblem(
    await api.call('POST', '/v1/applications', { body: { id, name: 'x' } }),
    409,
    'conflict',
  );
  expect(
    (await api.call('POST', '/v1/applications', { body: { name: 'x' } })).json<{ id: string }>().id,
  ).toMatch(/./);
});

test('the portal of an application shows its endpoints, makes more of them, and reaches no other webhook', async () => {
  const mine = await makeEndpoint(id);
  await api.call('POST', '/v1/applications', { body: { id: `${id}-other`, name: 'Other' } });
  const others = await makeEndpoint(`${id}-other`);
  const own = await world.makeWebhook('own');
  await api.call('PUT', '/v1/event_types/order.paid', { body: {} });
  const page = await world.openPage({
    application: id,
    capabilities: ['create', 'edit', 'rotate'],
  });
  expect((await page.call('GET', '/portal/session')).json()).toMatchObject({
    is_of_application: true,
    event_types: ['order.paid'],
  });
  const made = await page.call('POST', '/v1/reporting_webhooks', {
    body: {
      name: 'Made',
      endpoint: 'https://acme.example/2',
      events: ['message'],
      event_names: ['order.paid'],
    },
  });
  expect(made.json()).toMatchObject({ application_id: id, event_names: ['order.paid'] });
  const listed = (await page.call('GET', '/v1/reporting_webhooks')).json<{
    reporting_webhooks: Endpoint[];
  }>();
  expect(listed.reporting_webhooks.map((each) => each.id)).toEqual([
    mine.id,
    made.json<Endpoint>().id,
  ]);
  for (const webhookId of [others.id, own]) {
    expect((await page.call('GET', `/v1/reporting_webhooks/${webhookId}`)).statusCode).toBe(404);
    expect(
      (await page.call('PUT', `/v1/reporting_webhooks/${webhookId}`, { body: { name: 'x' } }))
        .statusCode,
    ).toBe(404);
  }
  const change = (body: object) => page.call('PUT', `/v1/reporting_webhooks/${mine.id}`, { body });
  expect((await change({ event_names: ['order.paid'] })).statusCode).toBe(200);
  expectProblem(await change({ events: ['*'] }), 400, 'invalid_request');
  expectProblem(await change({ attribute_filters: [] }), 400, 'invalid_request');
  for (const [url, method] of [
    ['/v1/applications', 'GET'],
    [pathOf(id, '/endpoints'), 'GET'],
    [pathOf(id), 'DELETE'],
  ] as const)
    expect((await page.call(method, url)).statusCode).not.toBe(200);
  expect((await api.call('DELETE', pathOf(id))).statusCode).toBe(200);
  expect((await page.call('GET', '/v1/reporting_webhooks')).statusCode).toBe(401);
});

test('a link names webhooks or an application, and one that there is', async () => {
  const link = (body: object) =>
    api.call('POST', '/v1/portal_links', { body: { for: 'x', ...body } });
  const fieldsOf = async (body: object) =>
    expectProblem(await link(body), 400, 'invalid_request').errors.map((error) => error.field);
  const own = await world.makeWebhook('linked');
  const { id: endpointId } = await makeEndpoint(id);
  expect(await fieldsOf({ application: 'nobody' })).toEqual(['application']);
  expect(await fieldsOf({ application: id, webhook_ids: [own] })).toEqual(['webhook_ids']);
  expect(await fieldsOf({ application: id, event_types: ['email_sent'] })).toEqual(['event_types']);
  expect(await fieldsOf({ webhook_ids: [endpointId] })).toEqual(['webhook_ids.0']);
  expect((await link({ application: id })).statusCode).toBe(200);
});

test('all endpoints of an application are replayed by one call, each by itself', async () => {
  const one = await makeEndpoint(id);
  const other = await makeEndpoint(id);
  const event = {
    environmentId: api.a.environmentId,
    eventType: 'message',
    objectType: 'message',
    metric: 'paid',
    occurredAtMs: 0,
    applicationId: id,
    data: { payload: {} },
  } as const;
  await appendDeliveries(api.database, [
    { ...event, eventId: `${id}-1`, webhookIds: [one.id, other.id] },
    { ...event, eventId: `${id}-2`, webhookIds: [one.id] },
  ]);
  await sql`
    update lanes set cursor_sequence = last_sequence, attempted_sequence = last_sequence
     where webhook_id in (${one.id}, ${other.id})`.execute(api.database);
  const replay = async (body: object) =>
    (await api.call('POST', pathOf(id, '/replays'), { body })).json<{ replays: object[] }>()
      .replays;
  expect(await replay({ since: 0, dry_run: true })).toEqual([
    { endpoint_id: one.id, status: 'counted', count: 2, count_is_exact: true },
    { endpoint_id: other.id, status: 'counted', count: 1, count_is_exact: true },
  ]);
  expect(await replay({ since: 0 })).toMatchObject([
    { endpoint_id: one.id, status: 'started', count: 2 },
    { endpoint_id: other.id, status: 'started', count: 1 },
  ]);
  expect(await replay({ since: 0 })).toMatchObject([{ status: 'running' }, { status: 'running' }]);
  const body = { since: 0 };
  expectProblem(
    await api.call('POST', pathOf(id, '/replays'), { key: api.b.key, body }),
    404,
    'not_found',
  );
});

test('a call that died before its answer starts no replay twice, also if the first ones have ended', async () => {
  await makeEndpoint(id);
  await makeEndpoint(id);
  const call = async () => {
    const headers = { 'idempotency-key': `replay-${id}` };
    const answer = await api.call('POST', pathOf(id, '/replays'), { headers, body: { since: 0 } });
    expect(answer.statusCode, answer.body).toBe(200);
    return answer.json<{ replays: { status: string }[] }>();
  };
  const first = await call();
  expect(first.replays.map(({ status }) => status)).toEqual(['started', 'started']);
  // As a process leaves it that dies before the answer is kept.
  await sql`
    update idempotency_keys set answer = null, locked_until = to_timestamp(0)
     where answer is not null`.execute(api.database);
  await sql`
    update webhook_replays set state = 'done', ended_at = now() where state = 'running'`.execute(
    api.database,
  );
  expect(await call()).toEqual(first);
});

test('a webhook shows its signing method and days until it is disabled, and refuses invalid values', async () => {
  const made = await makeEndpoint(id, { signing: 'standard_webhooks', disable_after_days: 5 });
  expect(made).toMatchObject({ signing: 'standard_webhooks', disable_after_days: 5 });
  const change = (body: object) => api.call('PUT', `/v1/reporting_webhooks/${made.id}`, { body });
  expect((await change({ signing: 'none', disable_after_days: null })).json()).toMatchObject({
    signing: 'none',
    disable_after_days: null,
  });
  for (const [field, value] of [
    ['disable_after_days', 31],
    ['disable_after_days', 0],
    ['signing', 'md5'],
  ] as const)
    expectProblem(await change({ [field]: value }), 400, 'invalid_request');
});

test('a query finds applications of the workspace by the beginning of their ids, a page at a time', async () => {
  for (const each of ['find-a', 'find-b', 'find-c', 'Find-d', 'fin'])
    await api.call('POST', '/v1/applications', { body: { id: each, name: 'Found' } });
  await api.call('POST', '/v1/applications', {
    body: { id: 'find-other', name: 'Other' },
    key: api.b.key,
  });
  const ids: string[] = [];
  for (let start = ''; ;) {
    const page = (
      await api.call('GET', `/v1/applications?query=find-&limit=2&start=${start}`)
    ).json<{ applications: { id: string }[]; next: string }>();
    ids.push(...page.applications.map((each) => each.id));
    start = page.next;
    if (start === '') break;
  }
  expect(ids).toEqual(['find-a', 'find-b', 'find-c']);
  const none = await api.call('GET', '/v1/applications?query=nobody');
  expect(none.json()).toEqual({ applications: [], next: '' });
});
