/**
 * Times of a lease: its end, its extension, and the tries to store progress under it.
 *
 * Its writes go to a real lane; the clock and the pauses are the test's.
 */
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { Database } from '@sluice/database/connection/connection';
import type { AttemptRecord } from '@sluice/database/delivery/lane-progress';
import { AppError } from '@sluice/domain/values/errors';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { createLogger } from '@sluice/platform/process/logger';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LaneDrainDeps } from '../../../src/lane/lane-drain-deps.ts';
import { LaneLease } from '../../../src/lane/lane-lease.ts';
import type { LaneStore } from '../../../src/lane/lane-store.ts';
import { IdleTime } from '../../../src/scheduling/idle-time.ts';
import { ALIVE, createLaneWorld, PROGRESS, storeOf } from '../support/lane-world.ts';

const TIMES = { timeoutMs: 1_000, leaseMs: 15_000, timeSliceMs: 1_000 };

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

let nowMs: number;
let pauses: number[];
let confirmed: (readonly [what: string, endedAtMs: number])[];
let presence: { isShown: boolean; shownSinceMs: number };
let onDue: () => void;
let whileItPauses: () => void;
let lease: LaneLease;
let store: LaneStore;
/** Replaced by a test; else the store's own. */
let keep: LaneStore['keep'] | undefined;
let confirmFailure: (endedAtMs: number) => Promise<void>;
let warnings: unknown[];
let lane: LaneKey;

beforeEach(async () => {
  nowMs = 0;
  pauses = [];
  confirmed = [];
  presence = { isShown: true, shownSinceMs: 0 };
  onDue = () => {};
  whileItPauses = () => {};
  keep = undefined;
  confirmFailure = async (endedAtMs) => void confirmed.push(['failure', endedAtMs]);
  const world = await createLaneWorld(database);
  await world.log(3);
  lane = world.key;
  store = storeOf(world);
  warnings = [];
  const logger = createLogger('test', 'silent');
  logger.warn = (fields: unknown) => void warnings.push(fields);
  const claimed = await store.claim({ lane: world.key, leaseMs: TIMES.leaseMs });
  const deps = {
    store: {
      ...store,
      keep: (report: Parameters<LaneStore['keep']>[0]) => keep?.(report) ?? store.keep(report),
    },
    leases: TIMES,
    get presence() {
      return { ...ALIVE, ...presence };
    },
    monotonicNow: () => nowMs,
    pause: async (durationMs: number) => {
      pauses.push(durationMs);
      whileItPauses();
      nowMs += durationMs;
    },
    confirmFailure: (endedAtMs: number) => confirmFailure(endedAtMs),
    confirmGivingUp: async (endedAtMs: number) => void confirmed.push(['giving up', endedAtMs]),
    idleTime: new IdleTime({ idleMs: () => 0, monotonicNow: () => 0 }),
    logger,
  } as unknown as LaneDrainDeps;
  lease = new LaneLease(deps, world.key, { fencing: claimed?.fencing ?? 0, atMs: 0 }, () =>
    onDue(),
  );
});
afterEach(() => {
  vi.useRealTimers();
  lease.close();
});

let sequence = 0;
const attempt = (given: Partial<AttemptRecord> = {}): AttemptRecord => ({
  sequence: (sequence % 3) + 1,
  attempt: ++sequence,
  startedAtMs: 1_800_000_000_000,
  durationMs: 3,
  status: 200,
  outcome: 'delivered',
  failure: null,
  failureMessage: null,
  responseHead: null,
  responseBody: null,
  ...given,
});

describe('a lease', () => {
  test('lets requests start that end before it does, and is over at its end', () => {
    expect(lease.mayStart(13_999)).toBe(true);
    expect(lease.mayStart(14_000)).toBe(false);
    expect([lease.isOver(14_999), lease.isOver(15_000)]).toEqual([false, true]);
  });

  test('lasts from the time at which progress was about to be stored', async () => {
    nowMs = 5_000;
    expect(await lease.keep(PROGRESS)).toBeDefined();
    expect(lease.mayStart(14_000)).toBe(true);
    expect(lease.isOver(15_000)).toBe(false);
    expect(lease.isOver(20_001)).toBe(true);
  });

  test('of a worker that was not shown since starts a request again once the database has confirmed it', async () => {
    presence = { isShown: true, shownSinceMs: 3_000 };
    expect(lease.mayStart(4_000)).toBe(false);
    nowMs = 5_000;
    await lease.keep(PROGRESS);
    expect(lease.mayStart(5_000)).toBe(true);
    presence = { isShown: false, shownSinceMs: 3_000 };
    expect(lease.mayStart(5_000)).toBe(false);
  });

  test('that was lost is over at once, which is logged with the number of its lost attempts', async () => {
    keep = async () => undefined;
    lease.add(attempt());
    expect(await lease.keep(PROGRESS)).toBeUndefined();
    expect([lease.isFenced, lease.isOver(0), lease.mayStart(0)]).toEqual([true, true, false]);
    expect(warnings).toEqual([{ ...lane, attempts: 1 }]);
  });

  test('that is closed asks for no storing of its attempts', () => {
    vi.useFakeTimers();
    let dueCount = 0;
    onDue = () => void dueCount++;
    lease.add(attempt());
    vi.advanceTimersByTime(1_000);
    expect([dueCount, lease.isKeepingDue]).toEqual([1, true]);
    lease.add(attempt());
    lease.close();
    vi.advanceTimersByTime(1_000);
    expect(dueCount).toBe(1);
  });
});

describe('progress that cannot be stored', () => {
  test('is tried four times a second while the lease lasts, and is logged', async () => {
    nowMs = 14_000;
    const error = new Error('Postgres is away');
    keep = () => Promise.reject(error);
    await expect(lease.keep(PROGRESS)).rejects.toThrow('Postgres is away');
    expect(warnings).toEqual([1, 2, 3].map(() => ({ error, ...lane })));
    expect(pauses).toEqual([250, 250, 250]);
  });

  test('is stored once that works again, and requests start again then, not before', async () => {
    let refusals = 2;
    const couldStart: boolean[] = [];
    whileItPauses = () => void couldStart.push(lease.mayStart(nowMs));
    keep = (report) =>
      refusals-- > 0 ? Promise.reject(new Error('Postgres is away')) : store.keep(report);
    expect(await lease.keep(PROGRESS)).toBeDefined();
    expect(pauses).toEqual([250, 250]);
    expect(couldStart).toEqual([false, false]);
    expect(lease.mayStart(nowMs)).toBe(true);
  });

  test('for a clock that is wrong is not tried again, and with any other code it is', async () => {
    lease.add(attempt({ outcome: 'retrying', failure: 'status' }));
    confirmFailure = () => Promise.reject(new AppError('CLOCK_WRONG', 'an hour ahead'));
    await expect(lease.keep(PROGRESS)).rejects.toThrow('an hour ahead');
    expect(pauses).toEqual([]);
    let refusals = 1;
    keep = (report) =>
      refusals-- > 0
        ? Promise.reject(new AppError('BROKER_UNAVAILABLE', 'away'))
        : store.keep(report);
    expect(await lease.keep(PROGRESS)).toBeDefined();
    expect(pauses).toEqual([250]);
  });
});

describe('the clock is confirmed before progress is stored', () => {
  test('for the first end of failures, and the last of deliveries that are given up', async () => {
    const at = (startedAtMs: number, outcome: AttemptRecord['outcome']) =>
      lease.add(attempt({ startedAtMs, outcome, durationMs: 5 }));
    for (const startedAtMs of [2_000, 1_000, 3_000]) at(startedAtMs, 'retrying');
    for (const startedAtMs of [5_000, 7_000, 6_000]) at(startedAtMs, 'abandoned');
    at(9_000, 'delivered');
    at(100, 'delivered');
    keep = async () => {
      expect(confirmed).toHaveLength(2);
      return undefined;
    };
    await lease.keep(PROGRESS);
    expect(confirmed).toEqual([
      ['failure', 1_005],
      ['giving up', 7_005],
    ]);
  });

  test('for a single delivery that is given up', async () => {
    lease.add(attempt({ outcome: 'abandoned' }));
    keep = async () => undefined;
    await lease.keep(PROGRESS);
    expect(confirmed).toEqual([['giving up', 1_800_000_000_003]]);
  });

  test('not for deliveries that arrived', async () => {
    lease.add(attempt());
    keep = async () => undefined;
    await lease.keep(PROGRESS);
    expect(confirmed).toEqual([]);
  });
});
