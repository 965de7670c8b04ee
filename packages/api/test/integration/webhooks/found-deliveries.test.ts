/**
 * Deliveries of one webhook and of all, by person, event and answer.
 *
 * No list has a delivery of another tenant, and the list of all webhooks has no answer of a receiver.
 */
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { listRecentDeliveries } from '@sluice/database/events/recent-deliveries';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertPerson } from '../support/inserted-rows.ts';
import { portalOf } from '../support/portal-world.ts';
import { recordDrain } from '../support/drained-lane.ts';

interface Found {
  readonly webhook_id?: number;
  readonly sequence: number;
  readonly event_id: string;
}

let api: ApiUnderTest;
/** Two of workspace A: each event is logged for both, one second after the other. */
let first: number;
let second: number;
let ofB: number;

async function makeWebhook(key: string, endpoint: string): Promise<number> {
  const body = { name: endpoint, endpoint, events: ['customer_subscribed'] };
  return (await api.call('POST', '/v1/reporting_webhooks', { body, key })).json().id;
}

const report = (environmentId: number, eventId: string) => ({
  environmentId,
  eventType: 'customer_subscribed' as const,
  eventId,
  objectType: 'customer' as const,
  metric: 'subscribed',
  occurredAtMs: Date.parse('2026-02-28T09:00:00Z'),
  data: {},
});

beforeAll(async () => {
  api = await startApi();
  const { environmentId } = api.a;
  first = await makeWebhook(api.a.key, 'https://one.example');
  second = await makeWebhook(api.a.key, 'https://two.example');
  ofB = await makeWebhook(api.b.key, 'https://other.example');
  await insertPerson(api.database, environmentId, { personId: 7, id: 'ada' });
  for (const number of [1, 2, 3, 4, 5])
    await appendDeliveries(api.database, [report(environmentId, `event-${number}`)]);
  await appendDeliveries(api.database, [report(api.b.environmentId, 'event-1')]);
  await sql`update delivery_log set person_id = 7 where environment_id = ${environmentId} and event_id in ('event-2', 'event-4')`.execute(
    api.database,
  );
  await sql`update delivery_log set cause_event_id = 'cause' where environment_id = ${environmentId} and event_id = 'event-3'`.execute(
    api.database,
  );
  // Of the two logs each second one entry: 1, 2, 1, 2, …
  await sql`
    update delivery_log set appended_at = date_trunc('hour', appended_at)
           + make_interval(secs => (2 * sequence + case when webhook_id = ${second} then 1 else 0 end)::int)
     where environment_id = ${environmentId}`.execute(api.database);
  const attempt = {
    ...{ startedAtMs: Date.parse('2026-02-28T10:00:00Z'), durationMs: 12 },
    ...{ responseHead: null, responseBody: 'secret of the receiver' },
  };
  const failed = { ...attempt, failure: 'status', failureMessage: 'no' } as const;
  await recordDrain(
    api,
    { environmentId, webhookId: first },
    { state: 'failing', cursor: 2, attemptedThrough: 4, nextProbeAtMs: api.clock.nowMs },
    [
      { ...attempt, sequence: 1 },
      { ...failed, sequence: 2, status: 404, outcome: 'abandoned' },
      { ...failed, sequence: 3, status: 503, outcome: 'retrying' },
      {
        ...attempt,
        ...{ sequence: 4, status: null, failure: 'timeout', failureMessage: 'late' },
        outcome: 'retrying',
      },
    ],
  );
});
afterAll(() => api.close());

async function list(path: string, query: Record<string, string> = {}, key = api.a.key) {
  const answer = await api.call('GET', path, { query, key });
  expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
  return answer.json<{ deliveries: Found[]; next: string }>();
}
const placesOf = ({ deliveries }: { deliveries: readonly Found[] }): string[] =>
  deliveries.map(({ webhook_id: id, sequence }) => `${id === second ? 'b' : 'a'}${sequence}`);

test.each<[Record<string, string>, string[]]>([
  [{}, ['b5', 'a5', 'b4', 'a4', 'b3', 'a3', 'b2', 'a2', 'b1', 'a1']],
  [{ person: 'ada' }, ['b4', 'a4', 'b2', 'a2']],
  [{ person: 'nobody' }, []],
  [{ event_id: 'event-5' }, ['b5', 'a5']],
  [{ event_id: 'cause' }, ['b3', 'a3']],
  [{ status_class: '2xx' }, ['a1']],
  [{ status_class: '4xx' }, ['a2']],
  [{ status_class: '5xx' }, ['a3']],
  [{ status_class: 'none' }, ['a4']],
  [{ status_class: '3xx' }, []],
  [{ state: 'retrying' }, ['a4', 'a3']],
  [{ state: 'pending', person: 'ada' }, ['b4', 'b2']],
  [{ event_type: 'email_sent' }, []],
])('of all webhooks %j finds these, newest first', async (query, places) => {
  expect(placesOf(await list('/v1/deliveries', query))).toEqual(places);
  const ofOne = await list(`/v1/reporting_webhooks/${first}/deliveries`, query);
  expect(placesOf(ofOne)).toEqual(places.filter((place) => place.startsWith('a')));
});

test.each([{}, { state: 'pending' }, { person: 'ada' }])(
  'pages of all webhooks by %j show the same deliveries in the same order for every page size',
  async (query) => {
    const all = placesOf(await list('/v1/deliveries', query));
    for (const limit of ['1', '3', '4']) {
      const seen: string[] = [];
      let start = '';
      do {
        const page = await list('/v1/deliveries', { ...query, limit, ...(start && { start }) });
        seen.push(...placesOf(page));
        start = page.next;
      } while (start !== '');
      expect(seen).toEqual(all);
    }
  },
);

test('if a page reads only a few rows of each log, the pages still follow each other in time and end', async () => {
  const seen: string[] = [];
  let from: readonly { webhookId: number; beforeSequence: number }[] | undefined = [
    first,
    second,
  ].map((webhookId) => ({ webhookId, beforeSequence: 100 }));
  let pages = 0;
  for (; from !== undefined; pages++) {
    expect(pages).toBeLessThan(20);
    const page = await listRecentDeliveries(
      api.database,
      api.a.environmentId,
      from,
      { personId: '7' },
      { limit: 10, scanLimit: 2 },
    );
    seen.push(...placesOf({ deliveries: page.deliveries.map((row) => ({ ...toFound(row) })) }));
    from = page.next;
  }
  expect(seen).toEqual(['b4', 'a4', 'b2', 'a2']);
});
const toFound = (row: { webhookId: number; sequence: number; eventId: string }): Found => ({
  webhook_id: row.webhookId,
  sequence: row.sequence,
  event_id: row.eventId,
});

test('a list has only deliveries of its own workspace, and the list of all webhooks leaves out answers of receivers', async () => {
  const otherWorkspace = await list('/v1/deliveries', { event_id: 'event-1' }, api.b.key);
  expect(otherWorkspace.deliveries).toHaveLength(1);
  const start = (await list('/v1/deliveries', { limit: '1' })).next;
  const answer = await list('/v1/deliveries', { start }, api.b.key);
  expect(answer.deliveries).toHaveLength(1);
  const ofA = JSON.stringify(await list('/v1/deliveries'));
  expect(ofA).not.toContain('secret of the receiver');
});

test('one delivery is read by its number, with the status of its attempts', async () => {
  const path = `/v1/reporting_webhooks/${first}/deliveries`;
  const found = await api.call('GET', `${path}/3`);
  expect(found.json()).toMatchObject({
    delivery: { sequence: 3, state: 'retrying', attempts: [{ status: 503 }] },
  });
  expectProblem(await api.call('GET', `${path}/99`), 404, 'not_found');
  expectProblem(await api.call('GET', `${path}/3`, { key: api.b.key }), 404, 'not_found');
});

test.each([
  ['status_class=6xx', 'status_class'],
  ['stat=x', null],
  ['start=x', 'start'],
  [`start=${Buffer.from('["a"]').toString('base64url')}`, 'start'],
])('of all webhooks %s is 400', async (query, field) => {
  const answer = await api.call('GET', `/v1/deliveries?${query}`);
  const { errors } = expectProblem(answer, 400, 'invalid_request');
  if (field) expect(errors).toMatchObject([{ field }]);
});

test('pages skip no delivery if a transaction that began later logged first', async () => {
  const { environmentId, key } = api.b;
  for (const number of [2, 3, 4])
    await appendDeliveries(api.database, [report(environmentId, `event-${number}`)]);
  // The times of 1, 2, 3, 4 are 10, 40, 20, 30.
  await sql`update delivery_log set appended_at = appended_at + (array[10, 40, 20, 30])[sequence] * interval '1 second'
     where environment_id = ${environmentId}`.execute(api.database);
  const seen: number[] = [];
  let start = '';
  do {
    const page = await list('/v1/deliveries', { limit: '1', ...(start && { start }) }, key);
    seen.push(...page.deliveries.map(({ sequence }) => sequence));
    start = page.next;
  } while (start !== '');
  expect(seen).toEqual([4, 3, 2, 1]);
});

// Security: an answer at once would show that the workspace has no such person, and a search that it has.
test('in the portal a person of another customer and an unknown person get the same answer', async () => {
  const { environmentId } = api.b;
  const page = await portalOf(api).openPage({ webhook_ids: [ofB] }, api.b);
  await insertPerson(api.database, environmentId, { personId: 8, id: 'of-another' });
  const reports = Array.from({ length: 10_100 }, (_, index) =>
    report(environmentId, `many-${index}`),
  );
  await appendDeliveries(api.database, reports);
  const find = async (person: string) =>
    (await page.call('GET', `/v1/reporting_webhooks/${ofB}/deliveries?person=${person}`)).json();
  const known = await find('of-another');
  expect(known.next).not.toBe('');
  expect(await find('unknown')).toEqual(known);
});
