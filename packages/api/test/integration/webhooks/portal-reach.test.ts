/** Security: a session of the portal only reaches the webhooks of its link, by the routes that are open to it. */
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RequestTracer } from '../../../src/serving/trace-requests.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import { OPENERS } from '../support/access-table.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { portalOf, type PortalPage } from '../support/portal-world.ts';
import { insertOwned } from '../support/tenant-world.ts';

const routes: { method: string; url: string }[] = [];
const watcher: Pick<RequestTracer, 'watch'> = {
  watch(app) {
    app.addHook('onRoute', ({ method, url }) => {
      const methods = [method].flat();
      // Methods that a path refuses are declared too.
      if (!methods.includes('OPTIONS'))
        routes.push(...methods.map((each) => ({ method: each, url })));
    });
  },
};

const ALL = ['edit', 'resend', 'rotate', 'create'];
const CREATING = { event_types: ['email_sent'], attribute_filters: null };

let api: ApiUnderTest;
let world: ReturnType<typeof portalOf>;
let owned: Readonly<Record<string, string>>;
let ofB: Readonly<Record<string, string>>;
let neighbourId: number;
let page: PortalPage;
beforeAll(async () => {
  api = await startApi({ requestTracer: watcher as RequestTracer });
  world = portalOf(api);
  owned = await insertOwned(api, api.a, 'mine');
  ofB = await insertOwned(api, api.b, 'other');
  neighbourId = await world.makeWebhook('neighbour');
  page = await world.openPage({
    webhook_ids: [Number(owned['webhook_id'])],
    capabilities: ALL,
    ...CREATING,
  });
});
afterAll(() => api.close());

const OF_WEBHOOK = '/v1/reporting_webhooks/:webhook_id';
/** Written down once more, apart from the routes. */
const IN_PORTAL = [
  'GET /portal/session',
  'DELETE /portal/session',
  // Types that may be published to the webhooks: a customer chooses among them.
  'GET /v1/event_types',
  'GET /v1/event_types/:name',
  'GET /v1/reporting_webhooks',
  'POST /v1/reporting_webhooks',
  `GET ${OF_WEBHOOK}`,
  `PUT ${OF_WEBHOOK}`,
  `GET ${OF_WEBHOOK}/deliveries`,
  `GET ${OF_WEBHOOK}/deliveries/:sequence`,
  `GET ${OF_WEBHOOK}/deliveries/:sequence/attempts/:attempt/request`,
  `POST ${OF_WEBHOOK}/deliveries/:sequence/resend`,
  `GET ${OF_WEBHOOK}/state`,
  `POST ${OF_WEBHOOK}/probe`,
  `POST ${OF_WEBHOOK}/skip_head`,
  `POST ${OF_WEBHOOK}/test`,
  `GET ${OF_WEBHOOK}/secrets`,
  `POST ${OF_WEBHOOK}/secrets`,
  `POST ${OF_WEBHOOK}/secrets/promote`,
  `DELETE ${OF_WEBHOOK}/secrets/next`,
  `GET ${OF_WEBHOOK}/replays`,
  `POST ${OF_WEBHOOK}/replays`,
  `GET ${OF_WEBHOOK}/replays/:replay_id`,
  `GET ${OF_WEBHOOK}/replays/:replay_id/attempts`,
  `POST ${OF_WEBHOOK}/replays/:replay_id/cancel`,
];

const fill = (url: string, values: Readonly<Record<string, string>>): string =>
  url.replaceAll(/:(\w+)/g, (_all, name: string) => encodeURIComponent(values[name] ?? '1'));

const bodyFor = (method: string) => (method === 'POST' || method === 'PUT' ? { body: {} } : {});
const nameOf = ({ method, url }: { method: string; url: string }) =>
  `${method === 'HEAD' ? 'GET' : method} ${url}`;

test('of all routes of the API a session of the portal opens those about its webhooks, and no other', async () => {
  const opened = new Set<string>();
  let refused = 0;
  for (const route of routes) {
    const opener = OPENERS.get(nameOf(route));
    // These ask for no session: their answers are the same for everybody.
    if (opener === undefined || opener === 'anybody' || opener === 'page') continue;
    // Last, below: it ends the session.
    if (nameOf(route) === 'DELETE /portal/session') continue;
    const answer = await page.call(route.method as 'GET', fill(route.url, owned), {
      ...bodyFor(route.method),
    });
    if (answer.statusCode === 401 || answer.statusCode === 403) refused++;
    else opened.add(nameOf(route));
  }
  opened.add('DELETE /portal/session');
  expect([...opened].toSorted()).toEqual(IN_PORTAL.toSorted());
  expect(refused).toBeGreaterThan(80);
});

test('another webhook of the workspace, and one of another tenant, are not there, by any route', async () => {
  const wrong: object[] = [];
  for (const name of IN_PORTAL.filter((each) => each.includes(':webhook_id'))) {
    const [method = '', url = ''] = name.split(' ');
    const others = [String(neighbourId), ofB['webhook_id']!, '0', '01', '1e0', '4294967297', '%31'];
    for (const webhook_id of others) {
      const values = { ...owned, webhook_id };
      const path = fill(url, values).replace('%2531', '%311');
      const { statusCode } = await page.call(method as 'GET', path, bodyFor(method));
      if (statusCode !== 404) wrong.push({ name, webhook_id, statusCode });
    }
  }
  expect(wrong).toEqual([]);
  const listed = (await page.call('GET', '/v1/reporting_webhooks')).json();
  expect(listed.reporting_webhooks.map((each: { id: number }) => String(each.id))).toEqual([
    owned['webhook_id'],
  ]);
});

test('the cookie is refused without its header, with the header of another link, beside a key, or from another page', async () => {
  const url = '/v1/reporting_webhooks';
  const other = await world.openPage({ webhook_ids: [neighbourId] });
  const call = (headers: Record<string, string>) =>
    api.app.inject({
      url,
      headers: { 'sec-fetch-site': 'same-origin', cookie: page.cookie, ...headers },
    });
  const header = { 'x-sluice-portal': page.header };
  expect((await call(header)).statusCode).toBe(200);
  expectProblem(await call({}), 401, 'unauthorized');
  expectProblem(await call({ 'x-sluice-portal': other.header }), 401, 'unauthorized');
  const ofTheOther = page.header.replace(/^\d+/, String(api.b.environmentId));
  expectProblem(await call({ 'x-sluice-portal': ofTheOther }), 401, 'unauthorized');
  for (const text of ['', 'x', `${page.header}/x`, '99999999999/x'])
    expectProblem(await call({ 'x-sluice-portal': text }), 401, 'unauthorized');
  const withKey = await call({ ...header, authorization: `Bearer ${api.a.key}` });
  expectProblem(withKey, 400, 'invalid_request');
  for (const foreign of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { host: 'sluice.example' },
  ])
    expectProblem(await call({ ...header, ...foreign }), 403, 'forbidden');
  const twice = await call({ ...header, cookie: `${page.cookie}; ${page.cookie}` });
  expectProblem(twice, 401, 'unauthorized');
});

test('each write needs its capability in the link', async () => {
  const path = `/v1/reporting_webhooks/${owned['webhook_id']}`;
  const writes = {
    edit: [
      ['PUT', path, { name: 'renamed' }],
      ['POST', `${path}/skip_head`, { sequence: 2 }],
    ],
    resend: [
      ['POST', `${path}/probe`],
      ['POST', `${path}/deliveries/1/resend`],
      ['POST', `${path}/test`, { event_type: 'email_sent' }],
      ['POST', `${path}/replays`, { since: 0, dry_run: true }],
      ['POST', `${path}/replays/${owned['replay_id']}/cancel`],
    ],
    rotate: [
      ['POST', `${path}/secrets`, {}],
      ['POST', `${path}/secrets/promote`],
      ['DELETE', `${path}/secrets/next`],
    ],
    create: [
      [
        'POST',
        '/v1/reporting_webhooks',
        { name: 'x', endpoint: 'https://x.example', events: ['email_sent'] },
      ],
    ],
  } as const;
  for (const allowed of [undefined, 'edit', 'resend', 'rotate', 'create'] as const) {
    const opened = await world.openPage({
      webhook_ids: [Number(owned['webhook_id'])],
      capabilities: allowed === undefined ? [] : [allowed],
      ...CREATING,
    });
    for (const [needed, calls] of Object.entries(writes)) {
      for (const [method, url, body] of calls) {
        const answer = await opened.call(method, url, body && { body });
        expect([allowed, url, answer.statusCode === 403]).toEqual([
          allowed,
          url,
          needed !== allowed,
        ]);
      }
    }
    expect((await opened.call('GET', `${path}/state`)).statusCode).toBe(200);
  }
});

test('a webhook that is made in the portal signs with its own key, not with the key of the workspace', async () => {
  const maker = await world.openPage({ capabilities: ['create'], ...CREATING });
  const body = { name: 'own', endpoint: 'https://own.example', events: ['email_sent'] };
  const made = await Promise.all(
    [1, 2].map(() => maker.call('POST', '/v1/reporting_webhooks', { body })),
  );
  const ids = made.map((answer) => answer.json<{ id: number }>().id);
  const { rows } = await sql<{ key: string }>`
    select signing_key as key from webhooks where webhook_id = any (${[neighbourId, ...ids]}::int[])
     union select webhook_signing_key from environments where environment_id = ${api.a.environmentId}`.execute(
    api.database,
  );
  const keys = rows.map(({ key }) =>
    api.encryptedText.decrypt(key, `environment ${api.a.environmentId}`),
  );
  // The neighbour, made with an app key, shares the workspace's.
  expect(new Set(keys).size).toBe(3);
});

test('filters, content and event types stay within the limits of the workspace', async () => {
  const filter = { field: 'data.customer_id', operator: 'eq', values: ['acme'] };
  const id = await world.makeWebhook('filtered', api.a, { attribute_filters: [filter] });
  const url = `/v1/reporting_webhooks/${id}`;
  const editor = await world.openPage({ webhook_ids: [id], capabilities: ['edit'] });
  for (const [field, value] of [
    ['attribute_filters', null],
    ['with_content', true],
    ['full_resolution', true],
    ['event_names', null],
    ['with_imports', true],
    ['with_late', true],
    ['with_person_attributes', true],
    ['events', ['email_sent', 'customer_unsubscribed']],
  ] as const) {
    const answer = await editor.call('PUT', url, { body: { name: 'x', [field]: value } });
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.json().errors[0].field).toBe(field);
  }
  const maker = await world.openPage({
    webhook_ids: [id],
    capabilities: ['create', 'edit'],
    event_types: ['email_sent', 'email_opened'],
    attribute_filters: [filter],
  });
  const changed = await maker.call('PUT', url, { body: { events: ['email_opened'] } });
  expect(changed.json().events).toEqual(['email_opened']);
  const wanted = { name: 'new', endpoint: 'https://new.example', events: ['email_sent'] };
  for (const beyond of [
    { events: ['customer_unsubscribed'] },
    { with_content: true },
    { full_resolution: true },
    { with_person_attributes: true },
    { event_names: ['order_placed'] },
    { events: ['*'] },
    { attribute_filters: [] },
  ]) {
    const answer = await maker.call('POST', '/v1/reporting_webhooks', {
      body: { ...wanted, ...beyond },
    });
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.json().errors[0].field).toBe(Object.keys(beyond)[0]);
  }
  const made = await maker.call('POST', '/v1/reporting_webhooks', { body: wanted });
  expect(made.json().attribute_filters).toEqual([filter]);
  expect((await maker.call('GET', `/v1/reporting_webhooks/${made.json().id}`)).statusCode).toBe(
    200,
  );
  const elsewhere = await editor.call('GET', `/v1/reporting_webhooks/${made.json().id}`);
  expectProblem(elsewhere, 404, 'not_found');
});

test('one link makes a bounded number of webhooks', async () => {
  const maker = await world.openPage({ capabilities: ['create'], ...CREATING });
  const make = (count: number) =>
    maker.call('POST', '/v1/reporting_webhooks', {
      body: { name: `w${count}`, endpoint: 'https://x.example', events: ['email_sent'] },
    });
  for (let count = 0; count < 20; count++) expect((await make(count)).statusCode).toBe(200);
  expectProblem(await make(20), 409, 'limit_reached');
});

test('two links can use the same Idempotency-Key independently', async () => {
  const pages = [
    await world.openPage({ capabilities: ['create'], ...CREATING }),
    await world.openPage({ capabilities: ['create'], ...CREATING }),
  ];
  const ids: number[] = [];
  for (const each of [...pages, pages[0]!]) {
    const answer = await each.call('POST', '/v1/reporting_webhooks', {
      headers: { 'idempotency-key': 'the-same' },
      body: { name: 'same', endpoint: 'https://x.example', events: ['email_sent'] },
    });
    ids.push(answer.json().id);
  }
  expect(ids[0]).not.toBe(ids[1]);
  expect(ids[2]).toBe(ids[0]);
});

test('a page of the portal hides the names of the staff of the workspace', async () => {
  const id = await world.makeWebhook('staffed');
  const url = `/v1/reporting_webhooks/${id}`;
  await api.call('PUT', url, { body: { disabled: true } });
  const opened = await world.openPage({ webhook_ids: [id, Number(owned['webhook_id'])] });
  const state = (await opened.call('GET', `${url}/state`)).json();
  expect(state.disabled_by).toMatchObject({ name: null, service_account_id: null });
  const byKey = (await api.call('GET', `${url}/state`)).json();
  expect(byKey.disabled_by.name).not.toBe(null);
  const ofOwned = `/v1/reporting_webhooks/${owned['webhook_id']}`;
  const { replays } = (await opened.call('GET', `${ofOwned}/replays`)).json();
  expect(replays[0].created_by).toBe('');
});

test('a link sees the author and the person of a replay only for its own replays, even if a key has its name', async () => {
  const id = await world.makeWebhook('replayed');
  const url = `/v1/reporting_webhooks/${id}/replays`;
  const namesake = { for: 'test', webhook_ids: [id], capabilities: ['resend'] };
  const opened = await world.openPage(namesake);
  const byKey = await api.call('POST', url, { body: { person: { id: 'secret' } } });
  expect(byKey.json().replay.created_by).toBe('test');
  await api.call('POST', `${url}/${byKey.json().replay.id}/cancel`, {});
  await opened.call('POST', url, { body: { person: { id: 'own' } } });
  const { replays } = (await opened.call('GET', url)).json();
  expect(replays).toMatchObject([
    { created_by: 'test in the portal', criteria: { person: { id: 'own' } } },
    { created_by: '' },
  ]);
  expect(replays[1].criteria.person).toBeUndefined();
});
