/**
 * Search of people by the beginning of an identifier. Also events with their bodies, and an attribute's earlier values.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertEvent, insertPerson } from '../support/inserted-rows.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
  const { environmentId } = api.a;
  for (const [index, id] of ['ada', 'adam', 'Ada', 'bob', 'b%b', 'zoë'].entries())
    await insertPerson(api.database, environmentId, { personId: index + 1, id });
  await insertPerson(api.database, environmentId, { personId: 7, email: 'Ada@Example.com' });
  await insertPerson(api.database, environmentId, {
    personId: 8,
    id: 'ada.l',
    email: 'ada.l@example.com',
  });
  await insertPerson(api.database, api.b.environmentId, { personId: 9, id: 'ada of b' });
  const event = (eventId: string, receivedAt: string, name: string, more: object = {}) =>
    insertEvent(api.database, environmentId, {
      ...{ personId: 1, eventId, name, receivedAt, occurredAt: receivedAt, data: { n: eventId } },
      ...more,
    });
  await event('e1', '2026-02-28T10:00:00Z', 'bought');
  await event('e2', '2026-02-28T10:00:01Z', 'looked');
  await event('e3', '2026-02-28T10:00:02Z', 'bought', { personId: 2 });
  const change = (data: object) => ({ kind: 'attribute_change', name: null, data });
  await event('c1', '2026-02-28T10:00:03Z', '', change({ plan: { from: null, to: 'free' } }));
  await event(
    'c2',
    '2026-02-28T10:00:04Z',
    '',
    change({ plan: { from: 'free', to: 'pro' }, a: { from: 1, to: 2 } }),
  );
  await event('c3', '2026-02-28T10:00:05Z', '', change({ 'pl?n': { from: null, to: 1 } }));
});
afterAll(() => api.close());

const get = async (path: string, query: Record<string, string> = {}, key = api.a.key) => {
  const answer = await api.call('GET', path, { query, key });
  expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
  return answer.json();
};
const namesOf = ({ results }: { results: { id: string | null; email: string | null }[] }) =>
  results.map(({ id, email }) => id ?? email);

test.each([
  ['ada', ['ada', 'ada.l', 'adam', 'Ada@Example.com']],
  ['ADA@', ['Ada@Example.com']],
  ['Ada', ['Ada', 'ada.l', 'Ada@Example.com']],
  ['b%', ['b%b']],
  ['zo', ['zoë']],
  ['a3000004', ['bob']],
  ['svc_a3000004', ['bob']],
  ['nobody', []],
])('%j finds those alone', async (query, names) => {
  expect(namesOf(await get('/v1/customers', { query }))).toEqual(names);
});

test('without a text the latest are listed, and pages of both hold together', async () => {
  const all = namesOf(await get('/v1/customers', { query: '', limit: '100' }));
  expect(all.slice(0, 2)).toEqual(['ada.l', 'Ada@Example.com']);
  expect(all).toHaveLength(8);
  for (const query of ['', 'ada']) {
    const whole = namesOf(await get('/v1/customers', { query, limit: '100' }));
    const seen: (string | null)[] = [];
    let start = '';
    do {
      const page = await get('/v1/customers', { query, limit: '1', ...(start && { start }) });
      seen.push(...namesOf(page));
      start = page.next;
    } while (start !== '');
    expect([...new Set(seen)]).toEqual(whole);
  }
  expect(namesOf(await get('/v1/customers', { query: 'ada' }, api.b.key))).toEqual(['ada of b']);
});

test.each(['9'.repeat(19), '9'.repeat(40)])(
  'a page token with the number %s, which no column can hold, is refused',
  async (number) => {
    const start = Buffer.from(JSON.stringify(['latest', number])).toString('base64url');
    const answer = await api.call('GET', `/v1/customers?query=&start=${start}`);
    expect(expectProblem(answer, 400, 'invalid_request').errors).toMatchObject([
      { field: 'start' },
    ]);
  },
);

test('one of email and query is needed, not both', async () => {
  const both = await api.call('GET', '/v1/customers?email=a@b.example&query=a');
  expect(expectProblem(both, 400, 'invalid_request').errors).toMatchObject([{ field: 'query' }]);
});

test('an event is read with its body, and events are listed by name, person and time', async () => {
  expect(await get('/v1/events/e2')).toMatchObject({
    event: { event_id: 'e2', type: 'event', name: 'looked', data: { n: 'e2' }, svc_id: 'a3000001' },
  });
  expectProblem(await api.call('GET', '/v1/events/none'), 404, 'not_found');
  expectProblem(await api.call('GET', '/v1/events/e2', { key: api.b.key }), 404, 'not_found');
  const idsOf = async (query: Record<string, string>) =>
    ((await get('/v1/events', query)).events as { event_id: string }[]).map(
      (each) => each.event_id,
    );
  expect(await idsOf({})).toEqual(['e3', 'e2', 'e1']);
  expect(await idsOf({ name: 'bought' })).toEqual(['e3', 'e1']);
  expect(await idsOf({ person: 'ada' })).toEqual(['e2', 'e1']);
  expect(await idsOf({ person: 'ada', name: 'bought' })).toEqual(['e1']);
  expect(await idsOf({ person: 'nobody' })).toEqual([]);
  const since = String(Date.parse('2026-02-28T10:00:01Z') / 1_000);
  expect(await idsOf({ since })).toEqual(['e3', 'e2']);
  const first = await get('/v1/events', { limit: '2' });
  expect((await get('/v1/events', { limit: '2', start: first.next })).events).toMatchObject([
    { event_id: 'e1' },
  ]);
  expect((await get('/v1/events', {}, api.b.key)).events).toEqual([]);
});

test('the history of an attribute has the newest change first, and only changes of that attribute', async () => {
  const { history } = await get('/v1/customers/ada/attributes/plan/history');
  expect(history).toEqual([
    { at: '2026-02-28T10:00:04.000Z', from: 'free', to: 'pro', activity_id: 'c2' },
    { at: '2026-02-28T10:00:03.000Z', from: null, to: 'free', activity_id: 'c1' },
  ]);
  expect((await get('/v1/customers/ada/attributes/pl%3Fn/history')).history).toHaveLength(1);
  expect((await get('/v1/customers/ada/attributes/never/history')).history).toEqual([]);
  expectProblem(
    await api.call('GET', '/v1/customers/nobody/attributes/plan/history'),
    404,
    'not_found',
  );
});
