import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Database } from '@sluice/database/connection/connection';
import { listDeliveries } from '@sluice/database/delivery/delivery-reads';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createHttpClient } from '../../../src/http/http-client.ts';
import type { HttpOutcome } from '../../../src/http/http-outcome.ts';
import { IdleTime } from '../../../src/scheduling/idle-time.ts';
import { answer, startReceiver } from '../../support/receiver.ts';
import {
  allowEight,
  createGate,
  createLaneWorld,
  DAY_MS,
  eventIds,
  holdAnswers,
  HOUR_MS,
  OK,
  POLICY,
  SIGNING_KEY,
  status,
  storeOf,
  TIMEOUT,
  until,
} from '../support/lane-world.ts';

let database: Database;
const closes: (() => unknown)[] = [];

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

afterEach(async () => {
  for (let close = closes.pop(); close; close = closes.pop()) await close();
});

describe('over a real connection', () => {
  test('deliveries arrive in order, as logged, each signed with its own timestamp', async () => {
    const receiver = await startReceiver(({ socket }) => void socket.write(answer(200)));
    const client = createHttpClient({ timeoutMs: 20_000, allowPrivateAddresses: true });
    closes.push(
      () => receiver.close(),
      () => client.close(),
    );
    const world = await createLaneWorld(database, { endpoint: receiver.url });
    await world.log(40);

    const post = (request: Parameters<typeof client.post>[0]): Promise<HttpOutcome> =>
      client.post(request);
    expect(await world.deliverAll({ post, policy: { ...POLICY, windowMax: 1 } })).toEqual({
      outcome: 'idle',
    });

    const received = receiver.requests.map((text) => {
      const [head = '', body = ''] = text.split('\r\n\r\n');
      const timestamp = /x-svc-timestamp: (\d+)\r\n/.exec(head)?.[1] ?? '';
      const signature = /x-svc-signature: ([0-9a-f]{64})$/m.exec(head)?.[1] ?? '';
      const expected = createHmac('sha256', SIGNING_KEY)
        .update(`v0:${timestamp}:${body}`)
        .digest('hex');
      expect(timingSafeEqual(Buffer.from(signature), Buffer.from(expected))).toBe(true);
      expect(Number(timestamp)).toBe(Math.floor(world.nowMs / 1000));
      return (JSON.parse(body) as { event_id: string }).event_id;
    });
    expect(received).toEqual(eventIds(1, 40));
    expect(await world.attempts(1)).toEqual([
      expect.objectContaining({
        attempt: 1,
        status: 200,
        outcome: 'delivered',
        failure: null,
        startedAtMs: world.nowMs,
      }),
    ]);
  });
});

test('Retry-After puts off the next try, by an hour at most, and a new drain waits for it too', async () => {
  const world = await createLaneWorld(database);
  await world.log(1);
  const asks = (value: string): HttpOutcome => ({
    ...status(503),
    head: `HTTP/1.1 503 Busy\nretry-after: ${value}`,
  });
  for (const [value, waitMs] of [
    ['300', 300_000],
    ['90000', HOUR_MS],
    [new Date(world.nowMs + 300_003 + HOUR_MS + 3 + 600_000).toUTCString(), 599_997],
  ] as const) {
    world.behave = () => asks(value);
    const outcome = await world.deliverAll();
    if (outcome.outcome !== 'waiting') throw new Error(outcome.outcome);
    // A date has whole seconds.
    expect(Math.abs(outcome.untilMs - (world.nowMs + 3 + waitMs))).toBeLessThanOrEqual(1_000);
    expect(await world.deliver()).toEqual(outcome);
    world.nowMs = outcome.untilMs;
  }
  world.behave = () => OK;
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(await world.attempts(1)).toHaveLength(4);
});

describe('a healthy lane', () => {
  test('raises its concurrency limit up to the most, and never starts out of order', async () => {
    const world = await createLaneWorld(database);
    await world.log(200);
    let inFlight = 0;
    const depths: number[] = [];
    world.behave = async () => {
      depths.push(++inFlight);
      await new Promise((resolve) => setImmediate(resolve));
      inFlight--;
      return OK;
    };
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(1, 200));
    expect(depths[0]).toBe(1);
    expect(Math.max(...depths)).toBe(8);
    expect(await world.lane()).toMatchObject({
      cursor: 200,
      state: 'healthy',
      concurrencyLimit: 8,
      isHeld: false,
    });
  });

  // One at a time waits for each answer: a busy process sent 20 a second to an endpoint that is 50 ms away.
  test.each([
    ['its only lane', 1, 8],
    ['each of two lanes', 2, 4],
    ['each of many lanes', 20, 1],
  ])(
    'of %s a busy process has as many requests in flight as it has room for',
    async (_, laneCount, depthMax) => {
      const world = await createLaneWorld(database);
      await world.log(60);
      let inFlight = 0;
      const depths: number[] = [];
      world.behave = async () => {
        depths.push(++inFlight);
        await new Promise((resolve) => setImmediate(resolve));
        inFlight--;
        return OK;
      };
      let nowMs = 0;
      const busy = new IdleTime({ idleMs: () => 0, monotonicNow: () => (nowMs += 20) });
      const changes = { idleTime: busy, laneCount: () => laneCount };
      expect(await world.deliverAll(changes)).toEqual({ outcome: 'idle' });
      expect(world.sent).toHaveLength(60);
      expect(Math.max(...depths)).toBe(depthMax);
    },
  );

  test('begins in a busy process with as many requests as it has room for beside its other lanes', async () => {
    const world = await createLaneWorld(database);
    await allowEight(world);
    await world.log(8);
    const gate = holdAnswers(world, OK);
    let nowMs = 0;
    const busy = new IdleTime({ idleMs: () => 0, monotonicNow: () => (nowMs += 20) });
    const delivering = world.deliver({ idleTime: busy, laneCount: () => 1 });
    await until(() => world.sent.length > 0);
    expect(world.sent).toHaveLength(4);
    gate.open();
    expect(await delivering).toEqual({ outcome: 'idle' });
  });

  test('lets others pass one that is slow, but does not forget it', async () => {
    const world = await createLaneWorld(database);
    await world.log(100);
    const gate = createGate();
    world.behave = async (_, eventId) => {
      if (eventId === 'e3') await gate.opened;
      return OK;
    };
    const delivering = world.deliver();
    await until(() => world.sent.length === 100);
    await until(async () => (await world.lane())?.attemptedThrough === 100);
    expect(await world.lane()).toMatchObject({ cursor: 2 });
    gate.open();
    expect(await delivering).toEqual({ outcome: 'idle' });
    expect(await world.lane()).toMatchObject({ cursor: 100 });
  });

  test('releases its permit when its time slice is over, and is woken again', async () => {
    const world = await createLaneWorld(database);
    await world.log(50);
    world.behave = async () => {
      await new Promise((resolve) => setTimeout(resolve, 15));
      return OK;
    };
    const leases = { timeoutMs: 4_000, leaseMs: 15_000, timeSliceMs: 30 };
    expect(await world.deliver({ leases })).toEqual({ outcome: 'more' });
    expect(world.wakes).toEqual(['now']);
    expect(world.sent.length).toBeLessThan(50);
    expect(await world.lane()).toMatchObject({ isHeld: false, cursor: world.sent.length });
    expect(await world.deliverAll({ leases })).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(1, 50));
  });

  test('may end its time slice at any moment, and goes on from there', async () => {
    const world = await createLaneWorld(database);
    let ticks = 0;
    for (let timeSliceMs = 1; timeSliceMs <= 40; timeSliceMs++) {
      await world.log(3);
      const leases = { timeoutMs: 1, leaseMs: 1_000_000, timeSliceMs };
      const { outcome } = await world.deliver({ leases, monotonicNow: () => ticks++ });
      expect(['more', 'idle']).toContain(outcome);
    }
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(1, 120));
  });

  test('sends the deliveries that are logged while it is drained', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    world.behave = async (_, eventId) => {
      if (eventId === 'e1') await world.log(3);
      return OK;
    };
    await world.deliverAll();
    expect(world.sent).toEqual(eventIds(1, 4));
  });
});

describe('a failing lane', () => {
  test('is kept and given back in one statement if no other request is under way', async () => {
    const world = await createLaneWorld(database);
    await world.log(2);
    world.behave = () => status(500);
    const store = storeOf(world);
    const kept: boolean[] = [];
    await world.deliver({
      store: {
        ...store,
        keep(report) {
          kept.push(report.progress.isLast);
          return store.keep(report);
        },
      },
    });
    expect(kept).toEqual([true]);
    expect(await world.attempts(1)).toHaveLength(1);
    expect(await world.lane()).toMatchObject({ state: 'failing', isHeld: false });
  });

  test('blocks everything, probes alone at the exact times, and resumes in order', async () => {
    const world = await createLaneWorld(database);
    await world.log(3);
    world.behave = () => status(500);
    // The concurrency limit is 1 at first, so the first delivery is the only one that was tried.
    expect(await world.deliver()).toEqual({
      outcome: 'waiting',
      untilMs: world.nowMs + 3 + HOUR_MS,
    });
    expect(world.wakes).toEqual([world.nowMs + 3 + HOUR_MS]);
    await world.log(2);

    // Woken too early: no delivery is sent.
    world.nowMs += HOUR_MS;
    expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
    expect(world.sent).toEqual(['e1']);

    world.nowMs += 3;
    expect(await world.deliver()).toEqual({ outcome: 'waiting', untilMs: world.nowMs + 3 + 7_500 });
    expect(world.sent).toEqual(['e1', 'e1']);

    world.nowMs += 3 + 7_500;
    world.behave = () => OK;
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(['e1', 'e1', ...eventIds(1, 5)]);
    expect(await world.attempts(1)).toEqual([
      expect.objectContaining({
        attempt: 1,
        outcome: 'retrying',
        failure: 'status',
        status: 500,
        responseHead: 'HTTP/1.1 500',
        responseBody: 'said 500',
      }),
      expect.objectContaining({ attempt: 2, outcome: 'retrying', failure: 'status', status: 500 }),
      expect.objectContaining({ attempt: 3, outcome: 'delivered', failure: null, status: 200 }),
    ]);
  });

  test('gives its head up after seven days of trying, not before, and goes on with the next', async () => {
    const world = await createLaneWorld(database);
    await world.log(3);
    const startMs = world.nowMs;
    world.behave = (_, eventId) => (eventId === 'e1' ? TIMEOUT : OK);
    let outcome = await world.deliver();
    while (outcome.outcome === 'waiting') {
      expect(world.sent.every((eventId) => eventId === 'e1')).toBe(true);
      world.nowMs = outcome.untilMs;
      outcome = await world.deliverAll();
    }
    expect(outcome).toEqual({ outcome: 'idle' });
    expect(world.nowMs).toBe(startMs + 7 * DAY_MS);
    const attempts = await world.attempts(1);
    expect(attempts.slice(0, -1).every((attempt) => attempt.outcome === 'retrying')).toBe(true);
    expect(attempts.at(-1)).toMatchObject({
      outcome: 'abandoned',
      failure: 'timeout',
      failureMessage: 'no answer',
      startedAtMs: startMs + 7 * DAY_MS,
    });
    expect(attempts.length).toBeGreaterThan(168);
    expect(world.sent.slice(attempts.length)).toEqual(['e2', 'e3']);
    expect(
      (await listDeliveries(database, world.key, 5)).map((delivery) => delivery.state),
    ).toEqual(['delivered', 'delivered', 'abandoned']);
  });

  test('never sends a delivery again that succeeded beside the head, and keeps the first attempt of each', async () => {
    const world = await createLaneWorld(database);
    await world.log(20);
    world.behave = () => OK;
    await world.deliverAll();
    await world.log(10);
    const gate = createGate();
    const failing = new Set(['e22', 'e25']);
    let started = 0;
    world.behave = async (_, eventId) => {
      if (++started === 8) gate.open();
      await gate.opened;
      if (failing.has(eventId)) return status(503);
      await new Promise((resolve) => setImmediate(resolve));
      return OK;
    };
    const failedAtMs = world.nowMs;
    expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
    expect(world.sent).toEqual(eventIds(1, 28));
    expect(await world.lane()).toMatchObject({
      state: 'failing',
      cursor: 21,
      attemptedThrough: 28,
    });

    // The head is back just before it would be given up; deliveries that failed beside it have their own clocks.
    world.nowMs = failedAtMs + 7 * DAY_MS - 1;
    world.behave = (_, eventId) => (eventId === 'e25' ? status(503) : OK);
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent.slice(28)).toEqual(['e22', 'e25', 'e29', 'e30']);
    expect((await world.attempts(25)).map((attempt) => attempt.outcome)).toEqual([
      'retrying',
      'abandoned',
    ]);
  });
});
