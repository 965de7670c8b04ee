import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { listMatchingDeliveries } from '@sluice/database/delivery/delivery-reads';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { recordDrain } from '../support/drained-lane.ts';

interface Delivery {
  readonly sequence: number;
  readonly event_id: string;
  readonly state: string;
  readonly attempts: Record<string, unknown>[];
}

let api: ApiUnderTest;
let webhookId: number;
const STARTED_AT_MS = Date.parse('2026-02-28T10:00:00.900Z');

/** Six deliveries: 1 delivered at the second attempt, 2 abandoned, 3 delivered, 4 is retried, 5 and 6 are blocked. */
beforeAll(async () => {
  api = await startApi();
  const made = await api.call('POST', '/v1/reporting_webhooks', {
    body: { name: 'a', endpoint: 'https://example.com', events: ['customer_subscribed'] },
  });
  webhookId = made.json().id;
  const lane = { environmentId: api.a.environmentId, webhookId };
  await appendDeliveries(
    api.database,
    [1, 2, 3, 4, 5, 6].map((number) => ({
      environmentId: api.a.environmentId,
      eventType: 'customer_subscribed',
      eventId: `event-${number}`,
      objectType: 'customer',
      metric: 'subscribed',
      occurredAtMs: Date.parse('2026-02-28T09:00:00Z'),
      data: {},
    })),
  );
  const succeeded = {
    startedAtMs: STARTED_AT_MS,
    durationMs: 12,
    responseHead: 'HTTP/1.1 200 OK',
    responseBody: 'ok',
  };
  const failed = {
    ...succeeded,
    status: 500,
    failure: 'status',
    failureMessage: 'answered 500',
    responseBody: 'oh no',
  } as const;
  const late = {
    status: null,
    failure: 'timeout',
    failureMessage: 'late',
    responseBody: null,
  } as const;
  await recordDrain(
    api,
    lane,
    { state: 'failing', cursor: 3, attemptedThrough: 4, nextProbeAtMs: api.clock.nowMs },
    [
      { ...failed, sequence: 1, outcome: 'retrying' },
      { ...succeeded, sequence: 1, attempt: 2 },
      { ...failed, sequence: 2, outcome: 'abandoned' },
      { ...succeeded, sequence: 3 },
      { ...succeeded, ...late, sequence: 4, outcome: 'retrying' },
    ],
  );
});
afterAll(() => api.close());

const list = async (query: Record<string, string> = {}) => {
  const answer = await api.call('GET', `/v1/reporting_webhooks/${webhookId}/deliveries`, { query });
  expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
  return answer.json<{ deliveries: Delivery[]; next: string }>();
};
const sequencesOf = (page: { deliveries: Delivery[] }) =>
  page.deliveries.map((delivery) => delivery.sequence);

test('lists deliveries with their attempts, newest first', async () => {
  const { deliveries, next } = await list();
  expect(deliveries.map(({ sequence, state }) => [sequence, state])).toEqual([
    [6, 'pending'],
    [5, 'pending'],
    [4, 'retrying'],
    [3, 'delivered'],
    [2, 'abandoned'],
    [1, 'delivered'],
  ]);
  expect(next).toBe('');
  expect(deliveries[0]!.attempts).toEqual([]);
  expect(deliveries[5]).toEqual({
    sequence: 1,
    event_id: 'event-1',
    event_type: 'customer_subscribed',
    state: 'delivered',
    occurred_at: 1_772_269_200,
    created_at: expect.any(Number),
    origin: 'event',
    resend_of: null,
    attempts: [
      {
        attempt: 1,
        started_at: 1_772_272_800,
        duration_ms: 12,
        outcome: 'retrying',
        status: 500,
        failure: 'status',
        failure_message: 'answered 500',
        response_head: 'HTTP/1.1 200 OK',
        response_body: 'oh no',
      },
      expect.objectContaining({ attempt: 2, outcome: 'delivered', status: 200, failure: null }),
    ],
  });
  expect(deliveries[2]!.attempts).toMatchObject([
    { status: null, failure: 'timeout', response_body: null },
  ]);
});

test('a type, a time range and a state together list the deliveries that match all of them', async () => {
  const { rows } = await sql<{ sequence: number; atMs: number }>`
    select sequence::int, (extract(epoch from appended_at) * 1000)::float8 as "atMs" from delivery_log
     where webhook_id = ${webhookId} order by sequence`.execute(api.database);
  await sql`
    update delivery_log set appended_at = appended_at - make_interval(mins => 10 * (6 - sequence)::int)
     where webhook_id = ${webhookId}`.execute(api.database);
  const secondsAgo = (count: number) => String(Math.floor(rows.at(-1)!.atMs / 1000) - count);
  expect(sequencesOf(await list({ event_type: 'customer_subscribed' }))).toEqual([
    6, 5, 4, 3, 2, 1,
  ]);
  expect(sequencesOf(await list({ event_type: 'email_sent' }))).toEqual([]);
  expect(sequencesOf(await list({ since: secondsAgo(1_500) }))).toEqual([6, 5, 4]);
  expect(sequencesOf(await list({ until: secondsAgo(1_500) }))).toEqual([3, 2, 1]);
  const range = { since: secondsAgo(2_700), until: secondsAgo(900) };
  expect(sequencesOf(await list(range))).toEqual([4, 3, 2]);
  expect(sequencesOf(await list({ ...range, state: 'delivered' }))).toEqual([3]);
  // Page by page, to an end that no older row is read for.
  const first = await list({ ...range, limit: '2' });
  const second = await list({ ...range, limit: '2', start: first.next });
  expect([first, second].map(sequencesOf)).toEqual([[4, 3], [2]]);
  expect(second.next).toBe('');
});

test.each([
  ['pending', [6, 5]],
  ['retrying', [4]],
  ['delivered', [3, 1]],
  ['abandoned', [2]],
])('state=%s lists those alone', async (state, sequences) => {
  const page = await list({ state });
  expect(sequencesOf(page)).toEqual(sequences);
  expect(page.next).toBe('');
});

test.each([{}, { state: 'delivered' }, { state: 'pending' }])(
  'pages of %j hold together',
  async (filter) => {
    const seen: number[] = [];
    let start = '';
    do {
      const page = await list({ ...filter, limit: '1', start });
      seen.push(...sequencesOf(page));
      start = page.next;
    } while (start !== '');
    expect(seen).toEqual(sequencesOf(await list(filter)));
  },
);

test('a state that is rare is found piece by piece, and each piece is bounded', async () => {
  const lane = { environmentId: api.a.environmentId, webhookId };
  const found: number[] = [];
  let pages = 0;
  for (let before: number | undefined = 100; before !== undefined; pages++) {
    const page = await listMatchingDeliveries(
      api.database,
      lane,
      { state: 'abandoned' },
      {
        beforeSequence: before,
        limit: 10,
        scanLimit: 1,
      },
    );
    found.push(...page.deliveries.map((delivery) => delivery.sequence));
    before = page.nextBefore;
  }
  expect(found).toEqual([2]);
  // Deliveries 4 to 1 one at a time, and the empty end.
  expect(pages).toBe(5);
});

test.each([
  ['state=lost', 'state'],
  ['limit=0', 'limit'],
  ['start=x', 'start'],
  [`start=${Buffer.from('[9007199254740993]').toString('base64url')}`, 'start'],
  [`start=${Buffer.from('[0]').toString('base64url')}`, 'start'],
])('%s is 400 and names the field', async (query, field) => {
  const answer = await api.call('GET', `/v1/reporting_webhooks/${webhookId}/deliveries?${query}`);
  expect(expectProblem(answer, 400, 'invalid_request').errors).toMatchObject([{ field }]);
});

// Security: a caller with a key may probe, and chooses the answers of its own endpoint. All tenants share this process.
test('a delivery with 2000 attempts shows the last 400, and the answers of the last ten', async () => {
  const { environmentId } = api.a;
  await sql`
    insert into delivery_attempts
      (environment_id, webhook_id, sequence, attempt, started_at, duration_ms, status, outcome, failure, response_head, response_body)
    select ${environmentId}, ${webhookId}, 4, n, now(), 1, 500, 'retrying', 'status', repeat('h', 16000), repeat('b', 16000)
      from generate_series(2, 2000) n`.execute(api.database);
  const { deliveries } = await list({ state: 'retrying' });
  const shown = deliveries[0]!.attempts;
  expect(shown.map(({ attempt }) => attempt)).toEqual(
    Array.from({ length: 400 }, (_, index) => 1601 + index),
  );
  const answered = shown.filter(({ response_body: body }) => body !== null);
  expect(answered.map(({ attempt }) => attempt)).toEqual([
    1991, 1992, 1993, 1994, 1995, 1996, 1997, 1998, 1999, 2000,
  ]);
  const trace = await api.call('GET', '/v1/events/event-4/trace');
  expect(trace.json().trace.deliveries[0].attempts).toHaveLength(400);
  await sql`
    delete from delivery_attempts
     where environment_id = ${environmentId} and webhook_id = ${webhookId} and sequence = 4 and attempt > 1`.execute(
    api.database,
  );
});
