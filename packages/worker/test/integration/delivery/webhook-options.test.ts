/** Settings of one webhook that its lane obeys: rate, concurrency, headers, filters. */
import type { Database } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { listAttempts, listDeliveries } from '@sluice/database/delivery/delivery-reads';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { updateWebhook } from '@sluice/database/webhooks/webhooks';
import { beforeAll, expect, test } from 'vitest';
import { createLaneWorld, eventIds, OK, status } from '../support/lane-world.ts';

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

test('a rate limit is kept from time slice to time slice: the lane waits, is woken, and goes on in order', async () => {
  const world = await createLaneWorld(database, { rateLimitPerSecond: 4 });
  await world.log(6);
  const sentAtMs: number[] = [];
  world.behave = () => {
    sentAtMs.push(world.nowMs);
    return OK;
  };
  for (;;) {
    const outcome = await world.deliverAll();
    if (outcome.outcome !== 'waiting') break;
    expect(outcome.untilMs).toBeGreaterThan(world.nowMs);
    // Too early: the lane is not claimed, and no delivery is sent.
    const sentBefore = world.sent.length;
    expect(await world.deliver()).toEqual(outcome);
    expect(world.sent).toHaveLength(sentBefore);
    world.nowMs = outcome.untilMs;
  }
  expect(world.sent).toEqual(eventIds(1, 6));
  expect((sentAtMs.at(-1) ?? 0) - (sentAtMs[0] ?? 0)).toBeGreaterThanOrEqual(5 * 250 - 100);
  expect(world.wakes.filter((wake) => wake !== 'now').length).toBeGreaterThanOrEqual(4);
});

test('events that come one by one are held to the rate too', async () => {
  const world = await createLaneWorld(database, { rateLimitPerSecond: 1 });
  await world.log(1);
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  await world.log(1);
  expect(await world.deliverAll()).toMatchObject({ outcome: 'waiting' });
  expect(world.sent).toEqual(['e1']);
});

test('a clock that is set back does not stop a webhook with a rate limit until it has caught up', async () => {
  const world = await createLaneWorld(database, { rateLimitPerSecond: 1 });
  await world.log(1);
  world.nowMs += 86_400_000;
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  world.nowMs -= 86_400_000;
  await world.log(2);
  const first = await world.deliverAll();
  expect(first).toMatchObject({ outcome: 'waiting' });
  world.nowMs += 2_000;
  await world.deliverAll();
  expect(world.sent).toEqual(eventIds(1, 2));
});

test('requests in flight do not lower the rate: the next starts in time beside them', async () => {
  const world = await createLaneWorld(database, { rateLimitPerSecond: 50 });
  await world.log(4);
  let inFlight = 0;
  let inFlightMax = 0;
  world.behave = async () => {
    inFlightMax = Math.max(inFlightMax, ++inFlight);
    await new Promise((resolve) => setTimeout(resolve, 100));
    inFlight--;
    return OK;
  };
  const startedAtMs = performance.now();
  const clock = {
    now: () => world.nowMs + Math.round(performance.now() - startedAtMs),
  };
  // A concurrency limit of one grows by each success; from then on several are under way.
  for (;;) {
    const outcome = await world.deliverAll(clock);
    if (outcome.outcome !== 'waiting') break;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(world.sent).toEqual(eventIds(1, 4));
  expect(inFlightMax).toBeGreaterThan(1);
});

test('without its rate limit a webhook is sent to as fast as it goes', async () => {
  const world = await createLaneWorld(database, { rateLimitPerSecond: 1 });
  await world.log(20);
  expect(await world.deliverAll()).toMatchObject({ outcome: 'waiting' });
  const changes = { rateLimitPerSecond: null };
  await world.change(changes);
  world.nowMs += 1_000;
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(eventIds(1, 20));
});

test('a concurrency cap is never exceeded, however well it goes', async () => {
  const world = await createLaneWorld(database, { windowMax: 2 });
  await world.log(40);
  let inFlight = 0;
  let inFlightMax = 0;
  world.behave = async () => {
    inFlightMax = Math.max(inFlightMax, ++inFlight);
    await new Promise((resolve) => setTimeout(resolve, 1));
    inFlight--;
    return OK;
  };
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(world.sent).toHaveLength(40);
  expect(inFlightMax).toBe(2);
});

test('custom headers are on every request, and change with the webhook', async () => {
  const withHeaders = (headers: object) => ({ customHeaders: JSON.stringify(headers) });
  const world = await createLaneWorld(database, withHeaders({ authorization: 'Bearer one' }));
  const seen: (string | undefined)[] = [];
  world.behave = ({ headers }) => {
    seen.push(headers['authorization']);
    expect(headers['x-svc-signature']).toMatch(/^[0-9a-f]{64}$/);
    return seen.length === 1 ? status(503) : OK;
  };
  await world.log(1);
  const failed = await world.deliverAll();
  const changes = withHeaders({ authorization: 'Bearer two' });
  await world.change(changes);
  if (failed.outcome === 'waiting') world.nowMs = failed.untilMs;
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(seen).toEqual(['Bearer one', 'Bearer two']);
});

test('an endpoint that repeats a custom header in its answer does not show it to readers of deliveries', async () => {
  const world = await createLaneWorld(database, {
    customHeaders: JSON.stringify({ authorization: 'Bearer token-of-ours' }),
  });
  world.behave = ({ headers }) => ({
    ...OK,
    head: `HTTP/1.1 200\nx-echo: ${headers['authorization']}`,
    body: JSON.stringify(headers),
  });
  await world.log(1);
  await world.deliverAll();
  const [attempt] = await listAttempts(database, world.key, [1]);
  expect(attempt?.responseHead).toBe('HTTP/1.1 200\nx-echo: ••••');
  expect(attempt?.responseBody).toContain('"authorization":"••••"');
  expect(attempt?.responseBody).not.toContain('token-of-ours');
});

test('filters keep unmatched events out of the log, and each webhook has its own filters', async () => {
  const filtered = await createLaneWorld(database, {
    attributeFilters: [{ field: 'data.plan', operator: 'eq', values: ['pro'] }],
  });
  const { environmentId } = filtered;
  const events = ['pro', 'free', 'pro', undefined].map((plan, index) => ({
    environmentId,
    eventId: `f${index}`,
    eventType: 'customer_subscribed' as const,
    objectType: 'customer' as const,
    metric: 'subscribed',
    occurredAtMs: filtered.nowMs,
    data: plan === undefined ? {} : { plan },
  }));
  const open = await createLaneWorld(database);
  const elsewhere = events.map((event) => ({ ...event, environmentId: open.environmentId }));
  await appendDeliveries(database, [...events, ...elsewhere]);
  const idsOf = async (world: typeof filtered) =>
    (await listDeliveries(database, world.key, 10)).map((row) => row.eventId).toReversed();
  expect(await idsOf(filtered)).toEqual(['f0', 'f2']);
  expect(await idsOf(open)).toEqual(['f0', 'f1', 'f2', 'f3']);
  expect(await filtered.lane()).toMatchObject({ lastSequence: 2 });

  const none = [{ field: 'data.plan', operator: 'eq' as const, values: ['none'] }];
  const changes = { attributeFilters: none };
  await updateWebhook(database, environmentId, filtered.webhookId, changes, filtered.nowMs);
  expect(await appendDeliveries(database, events)).toEqual([]);
});
