/** Traces of events and of reporting events, and their gaps. */
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { insertEvent, insertPerson } from '../support/inserted-rows.ts';
import { recordDrain } from '../support/drained-lane.ts';

let api: ApiUnderTest;
let webhookId: number;
const ENVELOPE_ID = '01ARYZ6S41TSV4RRFFQ69G5FAV';
const RECEIVED_AT = new Date('2026-02-28T10:00:00.123Z');
const METRIC_ID = '01BX5ZZKBKACTAV9WEVGEMMVRZ';
const REPORT_ID = '01BX5ZZKBKACTAV9WEVGEMMVS0';

beforeAll(async () => {
  api = await startApi();
  const { environmentId } = api.a;
  const { rows } = await sql<{ number: string }>`
    insert into envelopes (envelope_id, operation_count, processed_at)
    values (${ENVELOPE_ID}, 7, '2026-02-28T10:00:01Z') returning envelope_number as number`.execute(
    api.database,
  );
  const envelopeNumber = Number(rows[0]!.number);
  await insertPerson(api.database, environmentId, { personId: 1, id: 'ada' });
  await insertEvent(api.database, environmentId, {
    personId: 1,
    eventId: 'bought-1',
    occurredAt: '2026-02-28T09:00:00Z',
  });
  await insertEvent(api.database, environmentId, {
    personId: 1,
    eventId: 'of-before',
    occurredAt: '2026-02-28T09:00:00Z',
  });
  await sql`
    update event_ids set received_at = null, source = null
    where environment_id = ${environmentId} and event_id = 'of-before'`.execute(api.database);
  await sql`
    insert into event_ids (environment_id, event_id, received_at, source, envelope_number)
    values (${environmentId}, ${METRIC_ID}, ${RECEIVED_AT}, 'track.v1.metrics', ${envelopeNumber})`.execute(
    api.database,
  );
  const made = await api.call('POST', '/v1/reporting_webhooks', {
    body: {
      name: 'a',
      endpoint: 'https://example.com',
      events: ['email_sent', 'customer_subscribed'],
    },
  });
  webhookId = made.json().id;
  const report = {
    environmentId,
    objectType: 'email',
    metric: 'sent',
    occurredAtMs: 0,
    data: {},
    envelopeNumber,
  } as const;
  await appendDeliveries(api.database, [
    { ...report, eventType: 'email_sent', eventId: REPORT_ID, causeEventId: METRIC_ID },
    { ...report, eventType: 'customer_subscribed', eventId: 'without-cause' },
  ]);
  const lane = { environmentId, webhookId };
  const failed = {
    sequence: 1,
    durationMs: 12,
    status: 500,
    outcome: 'retrying',
    failure: 'status',
    failureMessage: 'answered 500',
  } as const;
  await recordDrain(
    api,
    lane,
    { state: 'failing', cursor: 0, attemptedThrough: 1, nextProbeAtMs: api.clock.nowMs },
    [
      { ...failed, attempt: 1, startedAtMs: 1_000 },
      { ...failed, attempt: 2, startedAtMs: 2_000 },
    ],
  );
});
afterAll(() => api.close());

const traceOf = async (eventId: string) => {
  const answer = await api.call('GET', `/v1/events/${encodeURIComponent(eventId)}/trace`);
  expect(answer.statusCode).toBe(200);
  return answer.json().trace;
};

test('the trace of an event shows the source and time of its call, and its place in the history', async () => {
  expect(await traceOf('bought-1')).toEqual({
    event_id: 'bought-1',
    caused_by_event_id: null,
    received: { at_ms: Date.parse('2026-03-01T00:00:00Z'), source: 'pipelines.track' },
    envelope: null,
    event: {
      kind: 'event',
      name: 'bought',
      svc_id: expect.any(String),
      anonymous_id: null,
      occurred_at_ms: Date.parse('2026-02-28T09:00:00Z'),
      processed_at_ms: Date.parse('2026-03-01T00:00:00Z'),
    },
    deliveries: [],
  });
});

test('the trace of a metric shows its commit batch, deliveries and attempts, also for an id in lower case', async () => {
  const shown = await traceOf(METRIC_ID.toLowerCase());
  expect(shown).toMatchObject({
    event_id: METRIC_ID,
    received: { at_ms: RECEIVED_AT.getTime(), source: 'track.v1.metrics' },
    envelope: {
      id: ENVELOPE_ID,
      made_at_ms: 1_469_918_176_385,
      operations: 7,
      processed_at_ms: Date.parse('2026-02-28T10:00:01Z'),
    },
    event: null,
    deliveries: [
      {
        webhook_id: webhookId,
        sequence: 1,
        event_id: REPORT_ID,
        event_type: 'email_sent',
        state: 'retrying',
        origin: 'event',
        attempts: [
          { attempt: 1, started_at_ms: 1_000, outcome: 'retrying', status: 500 },
          { attempt: 2, started_at_ms: 2_000, outcome: 'retrying', status: 500 },
        ],
      },
    ],
  });
});

test('the event id of a delivery leads to the trace of its cause', async () => {
  const shown = await traceOf(REPORT_ID);
  expect(shown).toMatchObject({
    event_id: REPORT_ID,
    caused_by_event_id: METRIC_ID,
    received: { source: 'track.v1.metrics' },
    envelope: { id: ENVELOPE_ID },
  });
  expect(shown.deliveries).toEqual((await traceOf(METRIC_ID)).deliveries);
});

test('the trace of a reporting event without a cause id has null for unknown parts', async () => {
  expect(await traceOf('without-cause')).toMatchObject({
    caused_by_event_id: null,
    received: null,
    envelope: { id: ENVELOPE_ID },
    event: null,
    deliveries: [{ sequence: 2, state: 'pending', attempts: [] }],
  });
});

test('of an event taken before arrivals were kept, only that it was taken is known', async () => {
  expect(await traceOf('of-before')).toMatchObject({ received: null, envelope: null, event: null });
});

test('a resend is among the deliveries of the event that it repeats', async () => {
  const other = await api.call('POST', '/v1/reporting_webhooks', {
    body: { name: 'b', endpoint: 'https://example.com', events: ['email_opened'] },
  });
  const id = other.json().id as number;
  await appendDeliveries(api.database, [
    {
      environmentId: api.a.environmentId,
      objectType: 'email',
      metric: 'opened',
      occurredAtMs: 0,
      data: {},
      eventType: 'email_opened',
      eventId: 'opened-1',
      causeEventId: 'opened-cause',
    },
  ]);
  const lane = { environmentId: api.a.environmentId, webhookId: id };
  await recordDrain(
    api,
    lane,
    { state: 'healthy', cursor: 1, attemptedThrough: 1, nextProbeAtMs: null },
    [{ sequence: 1 }],
  );
  const resent = await api.call('POST', `/v1/reporting_webhooks/${id}/deliveries/1/resend`, {
    body: {},
  });
  expect(resent.statusCode).toBe(200);
  const { deliveries } = await traceOf('opened-1');
  expect(deliveries).toMatchObject([
    { sequence: 1, origin: 'event', resend_of: null, state: 'delivered' },
    { sequence: 2, origin: 'resend', resend_of: 1, state: 'pending' },
  ]);
});

test('the trace of an unknown event is 404', async () => {
  const answer = await api.call('GET', '/v1/events/nothing/trace');
  expectProblem(answer, 404, 'not_found');
});

test('a trace does not show the deliveries of a deleted webhook', async () => {
  await api.call('DELETE', `/v1/reporting_webhooks/${webhookId}`);
  expect((await traceOf(METRIC_ID)).deliveries).toEqual([]);
  expectProblem(await api.call('GET', '/v1/events/without-cause/trace'), 404, 'not_found');
});
