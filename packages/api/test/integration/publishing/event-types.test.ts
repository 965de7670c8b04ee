/** Event types: versions, bounds, and whose they are. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { portalOf } from '../support/portal-world.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const put = (name: string, body: unknown, key?: string) =>
  api.call('PUT', `/v1/event_types/${encodeURIComponent(name)}`, { body, ...(key && { key }) });
const get = (path: string, key?: string) =>
  api.call('GET', `/v1/event_types${path}`, key ? { key } : {});
const SCHEMA = { type: 'object', required: ['total'] };

test('another schema is another version; the same one, however it is written, is not', async () => {
  const versionOf = async (body: unknown) => {
    const answer = await put('order.paid', body);
    expect(answer.statusCode, answer.body).toBe(200);
    return answer.json<{ version: number }>().version;
  };
  expect(await versionOf({ description: 'Paid.', schema: SCHEMA })).toBe(1);
  expect(
    await versionOf({ description: 'Paid.', schema: { required: ['total'], type: 'object' } }),
  ).toBe(1);
  expect(await versionOf({ description: 'It is paid.', schema: SCHEMA })).toBe(1);
  expect(
    await versionOf({ description: 'It is paid.', schema: { ...SCHEMA, title: 'Order' } }),
  ).toBe(2);
  expect(await versionOf({})).toBe(3);
  expect((await get('/order.paid')).json()).toMatchObject({
    version: 3,
    schema: null,
    description: '',
  });
  expect((await get('/order.paid?version=1')).json()).toMatchObject({
    name: 'order.paid',
    description: 'It is paid.',
    schema: SCHEMA,
  });
  expectProblem(await get('/order.paid?version=4'), 404, 'not_found');
  expectProblem(await get('/order.paid?version=0'), 400, 'invalid_request');
});

test('a schema keeps its keys, its numbers and a character that Postgres cannot store as a value', async () => {
  const schema = { enum: ['\0', 1e300, 0.1], properties: { 'b/c': {}, a: {} } };
  expect((await put('odd name/x', { schema })).json()).toMatchObject({ schema });
  expect((await get(`/${encodeURIComponent('odd name/x')}`)).json()).toMatchObject({ schema });
});

test.each<[string, string, unknown]>([
  [
    'schema.properties.a.typ',
    'a keyword that is none',
    { schema: { properties: { a: { typ: 1 } } } },
  ],
  ['schema.pattern', 'a pattern that goes back', { schema: { pattern: '(a)\\1' } }],
  ['schema.$ref', 'a reference elsewhere', { schema: { $ref: 'http://169.254.169.254/' } }],
  ['schema', 'a text', { schema: '{}' }],
  ['description', 'a long description', { description: 'x'.repeat(1_001) }],
  ['more', 'an unknown field', { more: 1 }],
])('refuses with the name %s: %s', async (field, _, body) => {
  const { errors } = expectProblem(await put('wrong', body), 400, 'invalid_request');
  expect(errors.map((error) => error.field)).toEqual([field]);
  expectProblem(await get('/wrong'), 404, 'not_found');
});

test('a name that no message can have is of no type', async () => {
  expectProblem(await put('é'.repeat(51), {}), 404, 'not_found');
  expectProblem(await put(' ', {}), 404, 'not_found');
});

test('the schemas of a workspace are bounded together', async () => {
  const large = { description: 'x'.repeat(30_000) };
  const statuses: number[] = [];
  for (let index = 0; index < 9; index++)
    statuses.push((await put(`large.${index}`, { schema: large }, api.b.key)).statusCode);
  expect(statuses).toEqual([...Array<number>(8).fill(200), 400]);
});

test('types are listed by name, a page at a time, to their workspace alone, and to its portal', async () => {
  for (const name of ['list.b', 'list.a', 'list.c']) await put(name, {});
  const names: string[] = [];
  for (let start = ''; ;) {
    const page = (await get(`?limit=2&start=${start}`)).json<{
      event_types: { name: string }[];
      next: string;
    }>();
    names.push(...page.event_types.map(({ name }) => name));
    start = page.next;
    if (start === '') break;
  }
  expect(names.filter((name) => name.startsWith('list.'))).toEqual(['list.a', 'list.b', 'list.c']);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(names.toSorted());
  expectProblem(await get('/list.a', api.b.key), 404, 'not_found');
  const world = portalOf(api);
  await api.call('POST', '/v1/applications', { body: { id: 'acme', name: 'Acme' } });
  const page = await world.openPage({ application: 'acme' });
  const shown = (await page.call('GET', '/v1/event_types')).json<{ event_types: unknown[] }>();
  expect(shown.event_types).toHaveLength(names.length);
  expect((await page.call('PUT', '/v1/event_types/list.a', { body: {} })).statusCode).not.toBe(200);
});

// Security: names of event types may show other customers of the workspace.
test('a portal link to webhooks shows the event types that its webhooks name, and hides the others', async () => {
  for (const name of ['shown.type', 'hidden.type', 'of.another', 'of.tracked'])
    await put(name, { schema: SCHEMA });
  const world = portalOf(api);
  const make = (name: string, more: object) => world.makeWebhook(name, api.a, more);
  await make('another', { events: ['*'], event_names: ['of.another'] });
  const page = await world.openPage({
    webhook_ids: [
      await make('plain', {}),
      await make('named', { events: ['message'], event_names: ['shown.type', 'unknown.type'] }),
      await make('all', { events: ['message'] }),
      await make('tracked', { events: ['event'], event_names: ['of.tracked'] }),
    ],
  });
  const listed = (await page.call('GET', '/v1/event_types')).json<{
    event_types: { name: string }[];
  }>();
  expect(listed.event_types.map(({ name }) => name)).toEqual(['shown.type']);
  for (const path of ['shown.type', 'shown.type?version=1'])
    expect((await page.call('GET', `/v1/event_types/${path}`)).json()).toMatchObject({
      schema: SCHEMA,
    });
  for (const name of ['hidden.type', 'of.another', 'of.tracked', 'unknown.type'])
    expectProblem(await page.call('GET', `/v1/event_types/${name}`), 404, 'not_found');
});

test('a deleted type is gone with its versions, and leaves the neighbours', async () => {
  await put('gone', { schema: SCHEMA });
  await put('gone', {});
  expectProblem(
    await api.call('DELETE', '/v1/event_types/gone', { key: api.b.key }),
    404,
    'not_found',
  );
  const forget = () => api.call('DELETE', '/v1/event_types/gone?forget=true');
  expect((await forget()).statusCode).toBe(200);
  expectProblem(await get('/gone'), 404, 'not_found');
  expectProblem(await get('/gone?version=1'), 404, 'not_found');
  expectProblem(await forget(), 404, 'not_found');
  expect((await get('/list.a')).statusCode).toBe(200);
});

test('an archived type keeps its versions, is out of the list and the portal, and a PUT brings it back', async () => {
  await put('old', { description: 'First.', schema: SCHEMA });
  await put('old', { description: 'Second.' });
  const archive = () => api.call('DELETE', '/v1/event_types/old');
  expectProblem(
    await api.call('DELETE', '/v1/event_types/old', { key: api.b.key }),
    404,
    'not_found',
  );
  expect((await archive()).statusCode).toBe(200);
  expect((await archive()).statusCode).toBe(200);
  expectProblem(await api.call('DELETE', '/v1/event_types/no.such'), 404, 'not_found');
  const namesOf = async (query: string, caller: Pick<typeof api, 'call'> = api) =>
    (await caller.call('GET', `/v1/event_types${query}`))
      .json<{ event_types: { name: string }[] }>()
      .event_types.map(({ name }) => name);
  expect(await namesOf('')).not.toContain('old');
  expect(await namesOf('?include=archived')).toContain('old');
  expect((await get('/old')).json()).toMatchObject({ version: 2, archived: true });
  expect((await get('/old?version=1')).json()).toMatchObject({ schema: SCHEMA, archived: true });
  const checked = await api.call('POST', '/v1/event_types/old/check', { body: { payload: {} } });
  expect(checked.json()).toEqual({
    fits: false,
    version: 2,
    errors: [{ pointer: '', message: 'is of an archived event type; restore the type first' }],
  });

  const world = portalOf(api);
  await api.call('POST', '/v1/applications', { body: { id: 'archive', name: 'Archive' } });
  const page = await world.openPage({ application: 'archive' });
  expect(await namesOf('', page)).not.toContain('old');
  expect(await namesOf('?include=archived', page)).not.toContain('old');
  for (const query of ['', '?version=1'])
    expectProblem(await page.call('GET', `/v1/event_types/old${query}`), 404, 'not_found');
  const session = (await page.call('GET', '/portal/session')).json<{ event_types: string[] }>();
  expect(session.event_types).not.toContain('old');
  expect(session.event_types).toContain('list.a');

  expect((await put('old', { description: 'Second.' })).json()).toMatchObject({
    version: 2,
    archived: false,
  });
  expect(await namesOf('')).toContain('old');
  await archive();
  // Another schema brings it back in another version.
  expect((await put('old', { schema: SCHEMA })).json()).toMatchObject({
    version: 3,
    archived: false,
  });
  expect((await get('/old?version=2')).json()).toMatchObject({ archived: false });
});

test('a check validates a payload as publishing would, against the stored schema or a draft, and stores no schema', async () => {
  await put('checked', { schema: { ...SCHEMA, properties: { total: { minimum: 0 } } } });
  const check = (name: string, body: unknown, key?: string) =>
    api.call('POST', `/v1/event_types/${name}/check`, { body, ...(key && { key }) });
  expect((await check('checked', { payload: { total: 1 } })).json()).toEqual({
    fits: true,
    version: 1,
    errors: [],
  });
  expect((await check('checked', { payload: { total: -1 } })).json()).toEqual({
    fits: false,
    version: 1,
    errors: [{ pointer: '/total', message: 'must be at least 0' }],
  });
  const draft = { type: 'object', required: ['currency'] };
  expect((await check('checked', { payload: { total: -1 }, schema: draft })).json()).toMatchObject({
    fits: false,
    version: null,
  });
  expect(
    (await check('no.such', { payload: { currency: 'eur' }, schema: draft })).json(),
  ).toMatchObject({ fits: true });
  expect((await get('/checked')).json()).toMatchObject({ version: 1 });
  expectProblem(await get('/no.such'), 404, 'not_found');
  expectProblem(await check('no.such', { payload: {} }), 404, 'not_found');
  expectProblem(await check('checked', { payload: {} }, api.b.key), 404, 'not_found');
  expectProblem(await check('checked', { payload: [] }), 400, 'invalid_request');
  expectProblem(await check('checked', {}), 400, 'invalid_request');
  const wrong = { payload: {}, schema: { typ: 1 } };
  const { errors } = expectProblem(await check('checked', wrong), 400, 'invalid_request');
  expect(errors.map((error) => error.field)).toEqual(['schema.typ']);
});

test('a check that would be too much work ends without a verdict', async () => {
  // Each definition asks the next one twice.
  const $defs = Object.fromEntries(
    Array.from({ length: 20 }, (_, index) => {
      const next = { $ref: `#/$defs/d${index + 1}` };
      return [`d${index}`, index === 19 ? { type: 'string' } : { anyOf: [next, next] }];
    }),
  );
  const schema = { $defs, $ref: '#/$defs/d0' };
  const answer = await api.call('POST', '/v1/event_types/deep/check', {
    body: { payload: {}, schema },
  });
  expect(answer.json()).toMatchObject({
    fits: false,
    errors: [{ pointer: '', message: 'is too much work to check; send a smaller one' }],
  });
});
