import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { claimLane } from '@sluice/database/delivery/lanes';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { recordDrain } from '../support/drained-lane.ts';

let api: ApiUnderTest;
const STARTED_AT_MS = Date.parse('2026-02-28T10:00:00Z');
const WEEK_S = 7 * 24 * 3600;

beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

async function createWebhook(): Promise<{ url: string; webhookId: number }> {
  const made = await api.call('POST', '/v1/reporting_webhooks', {
    body: { name: 'a', endpoint: 'https://example.com', events: ['email_sent'] },
  });
  const webhookId = made.json<{ id: number }>().id;
  api.woken.length = 0;
  return { url: `/v1/reporting_webhooks/${webhookId}`, webhookId };
}

/** Of four deliveries the first is delivered, the second failed once and blocks the others. */
async function createFailingWebhook() {
  const webhook = await createWebhook();
  const { environmentId } = api.a;
  const lane = { environmentId, webhookId: webhook.webhookId };
  // Other webhooks of this file want the same type and would get it too.
  await sql`update webhooks set disabled = webhook_id <> ${webhook.webhookId}`.execute(
    api.database,
  );
  await appendDeliveries(
    api.database,
    [1, 2, 3, 4].map((number) => ({
      environmentId,
      eventType: 'email_sent',
      eventId: `event-${number}`,
      objectType: 'email',
      metric: 'sent',
      occurredAtMs: STARTED_AT_MS,
      data: {},
    })),
  );
  const answered = {
    startedAtMs: STARTED_AT_MS,
    durationMs: 7,
    responseHead: 'HTTP/1.1 410 Gone',
    responseBody: 'gone',
  };
  const nextProbeAtMs = api.clock.nowMs + 3_600_000;
  await recordDrain(
    api,
    lane,
    { state: 'failing', cursor: 1, attemptedThrough: 2, nextProbeAtMs },
    [
      { ...answered, sequence: 1 },
      { ...answered, sequence: 2, status: 410, outcome: 'retrying', failure: 'status' },
    ],
  );
  return { ...webhook, lane };
}

async function newest(url: string) {
  const answer = await api.call('GET', `${url}/deliveries?limit=1`);
  return answer.json<{ deliveries: Record<string, unknown>[] }>().deliveries[0];
}

test('the state of an idle webhook is healthy and without a head', async () => {
  const { url } = await createWebhook();
  expect((await api.call('GET', `${url}/state`)).json()).toEqual({
    state: 'healthy',
    disabled: false,
    disabled_at: null,
    disabled_by: null,
    sending: false,
    unfinished_count: 0,
    next_probe_at: null,
    last_delivered_at: null,
    head: null,
  });
});

test('the state of a disabled webhook shows the time and the actor, and no next probe', async () => {
  const { url } = await createFailingWebhook();
  const by = { type: 'service_account', user_id: null, service_account_id: null };
  const disabledAt = Math.floor(api.clock.nowMs / 1000);
  await api.call('PUT', url, { body: { disabled: true } });
  api.clock.nowMs += 60_000;
  // Another change is no disabling.
  await api.call('PUT', url, { body: { name: 'another' } });
  expect((await api.call('GET', `${url}/state`)).json()).toMatchObject({
    state: 'disabled',
    disabled: true,
    disabled_at: disabledAt,
    disabled_by: { ...by, name: expect.any(String) },
    next_probe_at: null,
    unfinished_count: 3,
    head: { sequence: 2, attempts: 1 },
  });
  await api.call('PUT', url, { body: { disabled: false } });
  expect((await api.call('GET', `${url}/state`)).json()).toMatchObject({
    state: 'failing',
    disabled: false,
    disabled_at: null,
    disabled_by: null,
    next_probe_at: api.clock.nowMs / 1000,
  });
});

test('a webhook that was made disabled shows the time and the actor from the beginning', async () => {
  const made = await api.call('POST', '/v1/reporting_webhooks', {
    body: { name: 'a', endpoint: 'https://example.com', events: ['email_sent'], disabled: true },
  });
  const { id } = made.json<{ id: number }>();
  const state = (await api.call('GET', `/v1/reporting_webhooks/${id}/state`)).json();
  expect(state).toMatchObject({ state: 'disabled', disabled_by: { type: 'service_account' } });
  expect(state.disabled_at).toBeGreaterThan(0);
});

test('the state of a failing webhook shows its failed delivery, the reason and the deadline', async () => {
  const { url, lane } = await createFailingWebhook();
  const startedAt = STARTED_AT_MS / 1000;
  const state = {
    state: 'failing',
    disabled: false,
    disabled_at: null,
    disabled_by: null,
    sending: false,
    unfinished_count: 3,
    next_probe_at: api.clock.nowMs / 1000 + 3600,
    last_delivered_at: null,
    head: {
      sequence: 2,
      event_id: 'event-2',
      event_type: 'email_sent',
      attempts: 1,
      first_attempt_at: startedAt,
      last_attempt_at: startedAt,
      status: 410,
      failure: 'status',
      failure_meaning: expect.stringContaining('2xx'),
      failure_message: null,
      abandons_at: startedAt + WEEK_S,
    },
  };
  expect((await api.call('GET', `${url}/state`)).json()).toEqual(state);
  await api.call('POST', `${url}/probe`);
  await claimLane(api.database, lane, 60_000, api.clock.nowMs);
  expect((await api.call('GET', `${url}/state`)).json()).toMatchObject({ sending: true });
});

test('probe makes the next probe due and wakes the lane', async () => {
  const { url, lane } = await createFailingWebhook();
  const answer = await api.call('POST', `${url}/probe`);
  expect(answer.json()).toEqual({ result: 'due' });
  expect(api.woken).toEqual([lane]);
  expect((await api.call('GET', `${url}/state`)).json()).toMatchObject({
    next_probe_at: api.clock.nowMs / 1000,
  });
  await claimLane(api.database, lane, 60_000, api.clock.nowMs);
  expect((await api.call('POST', `${url}/probe`)).json()).toEqual({ result: 'in_progress' });
});

test('a probe of a healthy or disabled webhook returns the reason and wakes no worker', async () => {
  const { url } = await createWebhook();
  expect((await api.call('POST', `${url}/probe`)).json()).toEqual({ result: 'not_failing' });
  await api.call('PUT', url, { body: { disabled: true } });
  expect((await api.call('POST', `${url}/probe`)).json()).toEqual({ result: 'disabled' });
  expect(api.woken).toEqual([]);
});

test('skip_head abandons the head and records whose key did it and why', async () => {
  const { url, lane } = await createFailingWebhook();
  const answer = await api.call('POST', `${url}/skip_head`, {
    body: { sequence: 2, reason: 'the order is cancelled' },
  });
  expect(answer.json()).toEqual({ sequence: 2 });
  expect(api.woken).toEqual([lane]);
  expect((await api.call('GET', `${url}/state`)).json()).toMatchObject({
    state: 'healthy',
    unfinished_count: 2,
    head: { sequence: 3, attempts: 0, abandons_at: null },
  });
  const listed = await api.call('GET', `${url}/deliveries?state=abandoned`);
  expect(listed.json()).toMatchObject({
    deliveries: [
      {
        sequence: 2,
        attempts: [
          { status: 410, response_head: 'HTTP/1.1 410 Gone', response_body: 'gone' },
          {
            attempt: 2,
            outcome: 'abandoned',
            status: null,
            failure: 'skipped',
            failure_message: 'skipped with the key "test": the order is cancelled',
          },
        ],
      },
    ],
  });
});

test('a dry run of skip_head counts the deliveries that would resume, is refused as the call itself, and leaves the state as it is', async () => {
  const { url, lane } = await createFailingWebhook();
  const state = async () => (await api.call('GET', `${url}/state`)).json();
  const before = await state();
  const skip = (sequence: number) =>
    api.call('POST', `${url}/skip_head`, { body: { sequence, dry_run: true } });
  expect((await skip(2)).json()).toEqual({
    sequence: 2,
    resuming_count: before.unfinished_count - 1,
  });
  expectProblem(await skip(3), 409, 'conflict');
  expect(await state()).toEqual(before);
  expect(api.woken).toEqual([]);
  await api.call('POST', `${url}/probe`);
  await claimLane(api.database, lane, 60_000, api.clock.nowMs);
  expect(expectProblem(await skip(2), 409, 'conflict').message).toContain('being attempted');
  const healthy = await createWebhook();
  expectProblem(
    await api.call('POST', `${healthy.url}/skip_head`, { body: { sequence: 1, dry_run: true } }),
    409,
    'conflict',
  );
});

test('skip_head is 409 and keeps the state if the delivery is not the failed head or is being attempted', async () => {
  const { url, lane } = await createFailingWebhook();
  const skip = (sequence: number) => api.call('POST', `${url}/skip_head`, { body: { sequence } });
  expectProblem(await skip(3), 409, 'conflict');
  await api.call('POST', `${url}/probe`);
  await claimLane(api.database, lane, 60_000, api.clock.nowMs);
  expect(expectProblem(await skip(2), 409, 'conflict').message).toContain('being attempted');
  expect((await api.call('GET', `${url}/state`)).json()).toMatchObject({
    state: 'failing',
    head: { sequence: 2 },
  });
  const healthy = await createWebhook();
  const answer = await api.call('POST', `${healthy.url}/skip_head`, { body: { sequence: 1 } });
  expectProblem(answer, 409, 'conflict');
});

test('resend logs the delivery once more, marked, with the same event', async () => {
  const { url, lane } = await createFailingWebhook();
  const answer = await api.call('POST', `${url}/deliveries/1/resend`);
  expect(answer.json()).toEqual({ sequence: 5 });
  expect(api.woken).toEqual([lane]);
  expect(await newest(url)).toMatchObject({
    sequence: 5,
    event_id: 'event-1',
    event_type: 'email_sent',
    occurred_at: STARTED_AT_MS / 1000,
    origin: 'resend',
    resend_of: 1,
    state: 'pending',
  });
});

test('resend of a delivery that will be sent anyway is 409, of one that is not there 404', async () => {
  const { url } = await createFailingWebhook();
  for (const sequence of [2, 3])
    expectProblem(await api.call('POST', `${url}/deliveries/${sequence}/resend`), 409, 'conflict');
  expectProblem(await api.call('POST', `${url}/deliveries/9/resend`), 404, 'not_found');
  const large = await api.call('POST', `${url}/deliveries/9007199254740991/resend`);
  expectProblem(large, 404, 'not_found');
});

test('a test event is a marked sample of a type that need not be selected', async () => {
  const { url, lane } = await createFailingWebhook();
  const answer = await api.call('POST', `${url}/test`, { body: { event_type: 'sms_clicked' } });
  expect(answer.json()).toEqual({ sequence: 5, event_id: expect.stringMatching(/^id-/) });
  expect(api.woken).toEqual([lane]);
  expect(await newest(url)).toMatchObject({
    event_id: answer.json<{ event_id: string }>().event_id,
    event_type: 'sms_clicked',
    origin: 'test',
    resend_of: null,
  });
  const { rows } = await sql<{ body: string }>`
    select body from delivery_log where environment_id = ${lane.environmentId}
       and webhook_id = ${lane.webhookId} and sequence = 5`.execute(api.database);
  expect(JSON.parse(rows[0]!.body)).toMatchObject({
    object_type: 'sms',
    metric: 'clicked',
    timestamp: api.clock.nowMs / 1000,
    test: true,
    data: { href: 'https://example.com/orders/42' },
  });
});

test('a test event of a type that does not exist is 400, and to a disabled webhook 409', async () => {
  const { url } = await createWebhook();
  const wrong = await api.call('POST', `${url}/test`, { body: { event_type: 'email_eaten' } });
  expect(expectProblem(wrong, 400, 'invalid_request').errors).toMatchObject([
    { field: 'event_type' },
  ]);
  await api.call('PUT', url, { body: { disabled: true } });
  const refused = await api.call('POST', `${url}/test`, { body: { event_type: 'sms_clicked' } });
  expectProblem(refused, 409, 'conflict');
  expect((await api.call('GET', `${url}/deliveries`)).json()).toMatchObject({ deliveries: [] });
});

test('an action is done even when the lane cannot be woken: the reconcile loop finds it', async () => {
  const { url } = await createFailingWebhook();
  api.broker.isAway = true;
  try {
    expect((await api.call('POST', `${url}/probe`)).json()).toEqual({ result: 'due' });
  } finally {
    api.broker.isAway = false;
  }
});
