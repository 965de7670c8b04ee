/** Workers that are lost, that meet, and that lose their database. */
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { createTestDatabase, type TestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createLogger } from '@sluice/platform/process/logger';
import { leasesOf } from '../../../src/delivery/deliver-webhook.ts';
import type { LaneDrainDeps } from '../../../src/lane/lane-drain-deps.ts';
import { LaneLease } from '../../../src/lane/lane-lease.ts';
import { IdleTime } from '../../../src/scheduling/idle-time.ts';
import {
  ALIVE,
  createGate,
  createLaneWorld,
  endLeases,
  endStoredLeases,
  eventIds,
  HOUR_MS,
  type LaneWorld,
  OK,
  PROGRESS,
  status,
  storeOf,
  until,
} from '../support/lane-world.ts';

let testDatabase: TestDatabase;
let database: Database;
const closes: (() => unknown)[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});

afterEach(async () => {
  for (let close = closes.pop(); close; close = closes.pop()) await close();
});

describe('a worker that is lost', () => {
  test('leaves the lane to another when its lease ends; all deliveries arrive in order, and its writes are refused', async () => {
    const world = await createLaneWorld(database);
    await world.log(12);
    const gate = createGate();
    world.behave = async () => {
      if (world.sent.length > 5) await gate.opened;
      return OK;
    };
    // Frozen in the middle: some are kept, some are in flight.
    const frozen = world.deliver();
    await until(async () => ((await world.lane())?.cursor ?? 0) >= 5);
    const inFlight = world.sent.length;
    expect(await world.deliver()).toEqual({ outcome: 'held' });

    world.behave = () => OK;
    await endLeases(world);
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    const resent = world.sent.slice(inFlight);
    expect(resent).toEqual(eventIds(6, 12));
    expect(await world.lane()).toMatchObject({ cursor: 12 });

    await world.log(1);
    gate.open();
    expect(await frozen).toEqual({ outcome: 'fenced' });
    expect(await world.lane()).toMatchObject({ cursor: 12, lastSequence: 13, state: 'healthy' });
    for (let sequence = 1; sequence <= 12; sequence++) {
      expect(await world.attempts(sequence)).toEqual([
        expect.objectContaining({ attempt: 1, outcome: 'delivered' }),
      ]);
    }
  });

  test('does not shorten a wait', async () => {
    const world = await createLaneWorld(database);
    await world.log(4);
    await world.deliverAll();
    await world.log(4);
    const gate = createGate();
    world.behave = async (_, eventId) => {
      if (eventId === 'e5') return status(404);
      await gate.opened;
      return OK;
    };
    const frozen = world.deliver();
    await until(async () => (await world.lane())?.state === 'failing');
    await endLeases(world);
    expect(await world.lane()).toMatchObject({ isHeld: false });
    expect(await world.deliver()).toEqual({
      outcome: 'waiting',
      untilMs: world.nowMs + 3 + HOUR_MS,
    });
    gate.open();
    // No other worker took the lane meanwhile, so its results may still be stored.
    expect(await frozen).toEqual({ outcome: 'waiting', untilMs: world.nowMs + 3 + HOUR_MS });
  });

  test('starts no delivery that would outlast its lease', async () => {
    const world = await createLaneWorld(database);
    await world.log(5);
    expect(
      await world.deliver({ leases: { timeoutMs: 500, leaseMs: 400, timeSliceMs: 1_000 } }),
    ).toEqual({ outcome: 'more' });
    expect(world.sent).toEqual([]);
  });
});

describe('a lease', () => {
  const { leaseMs } = leasesOf(4_000);
  /** By the clock of Postgres, which ends it. */
  async function leftMs({ environmentId }: LaneWorld): Promise<number> {
    const { rows } = await sql<{ leftMs: number }>`
      select (extract(epoch from lease_until - clock_timestamp()) * 1000)::float8 as "leftMs" from lanes
       where environment_id = ${environmentId}`.execute(database);
    return rows[0]!.leftMs;
  }
  const expectInSettings = (ms: number): void => {
    expect(ms).toBeGreaterThan(0);
    expect(ms).toBeLessThanOrEqual(leaseMs);
  };

  test('that is claimed or kept ends in the time of the settings', async () => {
    const world = await createLaneWorld(database);
    await world.log(3);
    const store = storeOf(world);
    const claimed = (await store.claim({ lane: world.key, leaseMs }))!;
    expectInSettings(await leftMs(world));
    // Most of it has passed.
    await sql`update lanes set lease_until = clock_timestamp() + interval '1 second'
               where environment_id = ${world.environmentId}`.execute(database);
    const kept = await store.keep({
      lane: world.key,
      fencing: claimed.fencing,
      progress: { ...PROGRESS, attempts: [] },
      leaseMs,
    });
    expectInSettings(kept!.leaseLeftMs);
    expect(kept!.leaseLeftMs).toBeGreaterThan(leaseMs / 2);
    expectInSettings(await leftMs(world));
  });

  test('that comes with the event ends in the time of the settings', async () => {
    const world = await createLaneWorld(database);
    const taking = { leaseMs, holderProcessId: 0, nowMs: world.nowMs, countMax: 1 };
    await world.logAbout([null], taking);
    expectInSettings(await leftMs(world));
  });
});

describe('a lease that was lost', () => {
  /** Of a machine that was suspended: by its own clock the lease has just begun. */
  async function loseLease() {
    const world = await createLaneWorld(database);
    await world.log(3);
    const store = storeOf(world);
    const claim = { lane: world.key, leaseMs: 15_000 };
    const first = (await store.claim(claim))!;
    const deps = {
      store,
      leases: { timeoutMs: 1_000, leaseMs: 15_000, timeSliceMs: 1_000 },
      presence: ALIVE,
      monotonicNow: () => 0,
      pause: () => Promise.resolve(),
      confirmFailure: () => Promise.resolve(),
      confirmGivingUp: () => Promise.resolve(),
      idleTime: new IdleTime({ idleMs: () => 0, monotonicNow: () => 0 }),
      logger: createLogger('test', 'silent'),
    } as unknown as LaneDrainDeps;
    const lease = new LaneLease(deps, world.key, { fencing: first.fencing, atMs: 0 }, () => {});
    closes.push(() => lease.close());
    expect(lease.mayStart(0)).toBe(true);
    await sql`update lanes set lease_until = clock_timestamp() - interval '1 ms'
               where environment_id = ${world.environmentId}`.execute(database);
    expect(await store.claim(claim)).toMatchObject({ fencing: first.fencing + 1 });
    return { world, lease };
  }

  const delivered = {
    attempt: 1,
    startedAtMs: 1_800_000_000_000,
    durationMs: 3,
    status: 200,
    outcome: 'delivered',
    failure: null,
    failureMessage: null,
    responseHead: null,
    responseBody: null,
  } as const;
  test('lets its worker start no more deliveries as soon as it is known, and keeps no progress of it', async () => {
    const { world, lease } = await loseLease();
    lease.add({ ...delivered, sequence: 1 });
    expect(await lease.keep(PROGRESS)).toBeUndefined();
    expect(lease.isFenced).toBe(true);
    expect(lease.mayStart(0)).toBe(false);
    expect(await world.attempts(1)).toEqual([]);
    expect(await world.lane()).toMatchObject({ cursor: 0, isHeld: true });
    // Nor by trying again.
    expect(await lease.keep({ ...PROGRESS, isLast: true })).toBeUndefined();
    expect(await world.lane()).toMatchObject({ cursor: 0, isHeld: true });
  });
});

// Others end the leases of a worker without a session. Once it has a session again, it still holds its old leases in memory.
describe('a worker that was taken for dead while a request was under way', () => {
  async function beTakenForDead() {
    const world = await createLaneWorld(database);
    await world.logAbout([1, 1, 1]);
    const gate = createGate();
    world.behave = async () => {
      await gate.opened;
      return OK;
    };
    const presence = { ...ALIVE, isShown: true, shownSinceMs: 0 };
    const delivering = world.deliver({ presence });
    await until(() => world.sent.length === 1);
    presence.isShown = false;
    await endStoredLeases(world);
    return {
      world,
      delivering,
      returnAndAnswer: (): void => {
        presence.shownSinceMs = performance.now();
        presence.isShown = true;
        gate.open();
      },
    };
  }

  test('starts no other under a lease that another worker has taken over', async () => {
    const { world, delivering, returnAndAnswer } = await beTakenForDead();
    const other = await storeOf(world).claim({ lane: world.key, leaseMs: 15_000 });
    expect(other).toBeDefined();
    returnAndAnswer();
    expect(await delivering).toEqual({ outcome: 'fenced' });
    expect(world.sent).toEqual(['e1']);
  });

  test('keeps the answer if no other worker has taken the lane, and the rest follows in order', async () => {
    const { world, delivering, returnAndAnswer } = await beTakenForDead();
    returnAndAnswer();
    const { outcome } = await delivering;
    if (outcome === 'more') await world.deliverAll();
    else expect(outcome).toBe('idle');
    expect(world.sent).toEqual(['e1', 'e2', 'e3']);
    expect(await world.lane()).toMatchObject({ cursor: 3 });
  });
});

test('no delivery starts while the results of earlier ones cannot be written', async () => {
  const world = await createLaneWorld(database);
  // Its concurrency limit grows.
  await world.log(4);
  await world.deliverAll();
  await world.logAbout([1, 2, 2]);
  const store = storeOf(world);
  const answers = new Map([
    ['e5', createGate()],
    ['e6', createGate()],
  ]);
  world.behave = async (_, eventId) => {
    await answers.get(eventId)?.opened;
    return OK;
  };
  const writable = createGate();
  let refusals = 0;
  const delivering = world.deliver({
    store: {
      ...store,
      keep: (report) => {
        if (refusals > 0) return writable.opened.then(() => store.keep(report));
        refusals++;
        return Promise.reject(new Error('Postgres is away'));
      },
    },
  });
  await until(() => world.sent.length === 6);
  answers.get('e5')?.open();
  await until(() => refusals === 1);
  // Its answer would start e7, about the same person.
  answers.get('e6')?.open();
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(world.sent).toEqual(eventIds(1, 6));
  writable.open();
  await delivering;
  await world.deliverAll();
  expect(world.sent).toEqual(eventIds(1, 7));
});

// With WEBHOOK_TIMEOUT_MS past the lease no delivery would be sent, and no message would explain it.
test.each([1, 4_000, 15_000, 60_000])(
  'a lease is long enough for requests of %i ms',
  async (timeoutMs) => {
    const world = await createLaneWorld(database);
    await world.log(3);
    // The time slice of the settings is shorter than a standstill of a busy machine.
    const leases = { ...leasesOf(timeoutMs), timeSliceMs: 10_000 };
    expect(await world.deliver({ leases })).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(['e1', 'e2', 'e3']);
  },
);

test('one of many workers drains a lane, and each delivery is sent once', async () => {
  const world = await createLaneWorld(database);
  await world.log(150);
  world.behave = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return OK;
  };
  const leases = { timeoutMs: 4_000, leaseMs: 15_000, timeSliceMs: 5 };
  const outcomes = new Set<string>();
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      for (let outcome = ''; outcome !== 'idle';) {
        ({ outcome } = await world.deliver({ leases }));
        outcomes.add(outcome);
        // Each claim locks the lane for a moment, so asked without a pause a busy machine hardly delivers.
        if (outcome === 'held') await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }),
  );
  expect(world.sent).toEqual(eventIds(1, 150));
  expect(outcomes).toEqual(new Set(['more', 'held', 'idle']));
});

test('progress that could not be written is written when the database is back, and each delivery is sent once', async () => {
  const world = await createLaneWorld(database);
  await world.log(60);
  const separate = createDatabase({
    url: testDatabase.url,
    poolMax: 2,
    applicationName: 'cut',
    onError: () => {},
  });
  closes.push(() => separate.destroy());
  world.behave = async (_, eventId) => {
    if (eventId === 'e20') {
      await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'cut'`.execute(
        database,
      );
    }
    return OK;
  };
  const leases = { timeoutMs: 1_000, leaseMs: 15_000, timeSliceMs: 10_000 };
  await until(async () => {
    const outcome = await world
      .deliver({ store: storeOf(world, separate), leases })
      .catch(() => ({ outcome: 'failed' }));
    return outcome.outcome === 'idle';
  });
  expect(world.sent).toEqual(eventIds(1, 60));
  expect(await world.lane()).toMatchObject({ cursor: 60 });
});
