/**
 * A list of webhooks, with their states and attempts on request.
 *
 * GET of one state gives the same values.
 */
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { writeMinutes } from '@sluice/database/maintenance/minute-statistics';
import { LATENCY_CLASS_COUNT } from '@sluice/domain/delivery/latency-counts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { recordDrain } from '../support/drained-lane.ts';
import { portalOf } from '../support/portal-world.ts';

let api: ApiUnderTest;
let world: ReturnType<typeof portalOf>;
let failingId: number;
let idleId: number;
beforeAll(async () => {
  api = await startApi();
  world = portalOf(api);
  failingId = await world.makeWebhook('failing');
  const { environmentId } = api.a;
  await appendDeliveries(
    api.database,
    [1, 2].map((number) => ({
      environmentId,
      eventType: 'email_sent',
      eventId: `event-${number}`,
      objectType: 'email',
      metric: 'sent',
      occurredAtMs: 0,
      data: {},
    })),
  );
  const nextProbeAtMs = api.clock.nowMs + 3_600_000;
  await recordDrain(
    api,
    { environmentId, webhookId: failingId },
    { state: 'failing', cursor: 0, attemptedThrough: 1, nextProbeAtMs },
    [{ sequence: 1, outcome: 'retrying', failure: 'timeout' }],
  );
  idleId = await world.makeWebhook('idle');
  await world.makeWebhook('others', api.b);
});
afterAll(() => api.close());

interface Listed {
  readonly id: number;
  readonly state?: object;
  readonly stats?: object;
}
const list = async (query: string): Promise<readonly Listed[]> =>
  (await api.call('GET', `/v1/reporting_webhooks${query}`)).json().reporting_webhooks;

test('each listed webhook has the state of its own route, but only on request', async () => {
  const listed = await list('?include=state');
  expect(listed.map(({ id }) => id)).toEqual([failingId, idleId]);
  for (const { id, state } of listed)
    expect(state).toEqual((await api.call('GET', `/v1/reporting_webhooks/${id}/state`)).json());
  expect(listed[0]?.state).toMatchObject({ state: 'failing', unfinished_count: 2 });
  expect(listed[1]?.state).toMatchObject({ state: 'healthy', unfinished_count: 0 });
  expect((await list('')).every((each) => !('state' in each))).toBe(true);
});

test('in the portal the list has only the webhooks of the link, with their state', async () => {
  const page = await world.openPage({ webhook_ids: [failingId] });
  const answer = await page.call('GET', '/v1/reporting_webhooks?include=state');
  expect(answer.json().reporting_webhooks).toMatchObject([
    { id: failingId, state: { state: 'failing' } },
  ]);
  expect(answer.json().reporting_webhooks.length).toBe(1);
});

test('each listed webhook has its attempts of the last hour, of all workers, on request', async () => {
  const minute = (webhookId: number, minutesAgo: number, delivered: number, failed: number) => ({
    ...{ environmentId: api.a.environmentId, webhookId, delivered, failed },
    minuteMs: Math.floor(api.clock.nowMs / 60_000 - minutesAgo) * 60_000,
    latencyCounts: Array.from({ length: LATENCY_CLASS_COUNT }, () => 0),
  });
  await writeMinutes(
    api.database,
    'one',
    [],
    [minute(failingId, 1, 5, 2), minute(failingId, 61, 9, 9)],
  );
  await writeMinutes(
    api.database,
    'two',
    [],
    [minute(failingId, 1, 1, 0), minute(failingId, 59, 1, 1)],
  );
  const listed = await list('?include=state,stats');
  expect(listed).toMatchObject([
    { id: failingId, state: { state: 'failing' }, stats: { delivered: 7, failed: 3 } },
    { id: idleId, state: { state: 'healthy' }, stats: { delivered: 0, failed: 0 } },
  ]);
  const [first] = await list('?include=stats');
  expect([first?.stats, first?.state]).toEqual([{ delivered: 7, failed: 3 }, undefined]);
});

test('something else to include is refused by name', async () => {
  const answer = await api.call('GET', '/v1/reporting_webhooks?include=status');
  expectProblem(answer, 400, 'invalid_request');
  expect(answer.json().errors[0].field).toBe('include');
});
