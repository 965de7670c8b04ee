/** Reads, statements and endings of a drain. */
import type { LogRequest } from '@sluice/database/delivery/logged-deliveries';
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { LanesInProgress } from '../../../src/delivery/lanes-in-progress.ts';
import {
  allowEight,
  createFailingLane,
  createGate,
  createLaneWorld,
  eventIds,
  holdAnswers,
  holdEach,
  LEASE_MS,
  OK,
  status,
  storeOf,
  until,
  type LaneWorld,
} from '../support/lane-world.ts';

let database: Database;
let world: LaneWorld;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});
beforeEach(async () => {
  world = await createLaneWorld(database);
});

interface Read extends Pick<LogRequest, 'after' | 'limit'> {
  /** Requests that were started before. */
  readonly sentBefore: number;
}

/** Reads of the log by drains with this store. */
function watchReads({ sent }: LaneWorld, store = storeOf(world)) {
  const reads: Read[] = [];
  const load: typeof store.load = (request) => {
    const { after, limit } = request;
    reads.push({ after, limit, sentBefore: sent.length });
    return store.load(request);
  };
  return { reads, store: { ...store, load } };
}

/** Logs a delivery, and hands the drain that runs here its text. */
const logOne = async () => {
  const taking = { leaseMs: LEASE_MS, holderProcessId: 0, nowMs: world.nowMs, countMax: 1 };
  const [lane] = await world.logAbout([null], taking);
  return lane!;
};

/** A drain that was handed its first delivery, which hangs until the gate is open. */
async function drainHanded(answer = OK) {
  const gate = holdAnswers(world, answer);
  const inProgress = new LanesInProgress();
  const { claimed, ...lane } = await logOne();
  const { reads, store } = watchReads(world);
  const delivering = world.deliver(
    { inProgress, store },
    { claimed: claimed!, claimedAtMs: performance.now(), deliveries: lane.deliveries! },
  );
  await until(() => world.sent.length === 1);
  return { gate, inProgress, lane, delivering, reads };
}

test('deliveries run 1,024 ahead of one that hangs, and the others follow once it has ended', async () => {
  await allowEight(world);
  await world.log(1_024);
  const answer = holdEach(world, ['e1']);
  const { reads, store } = watchReads(world);
  const inProgress = new LanesInProgress();
  const delivering = world.deliver({ inProgress, store });
  await until(async () => ((await world.lane())?.attemptedThrough ?? 0) >= 1_024);
  // Also if they are handed over, or logged later.
  expect(inProgress.tell(await logOne())).toBe(true);
  for (const lane of await world.log(75)) expect(inProgress.tell(lane)).toBe(true);
  await nextTurn();
  await nextTurn();
  expect(world.sent).toEqual(eventIds(1, 1_024));
  expect(reads.every(({ after, limit }) => after + limit <= 1_024)).toBe(true);
  answer('e1');
  expect(await delivering).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(eventIds(1, 1_100));
});

test('a delivery that is logged while another one hangs is read and sent beside it', async () => {
  await allowEight(world);
  await world.log(1);
  const answer = holdEach(world, ['e1']);
  const inProgress = new LanesInProgress();
  const delivering = world.deliver({ inProgress });
  await until(() => world.sent.length === 1);
  for (const lane of await world.log(1)) expect(inProgress.tell(lane)).toBe(true);
  await until(() => world.sent.length === 2);
  answer('e1');
  expect(await delivering).toEqual({ outcome: 'idle' });
});

test('deliveries that are handed over while the first one hangs are read later, beyond the next few', async () => {
  const { gate, inProgress, delivering, reads } = await drainHanded();
  for (let count = 0; count < 40; count++) expect(inProgress.tell(await logOne())).toBe(true);
  expect(reads).toEqual([]);
  gate.open();
  expect(await delivering).toEqual({ outcome: 'idle' });
  expect(reads[0]?.after).toBeLessThanOrEqual(32);
  expect(world.sent).toEqual(eventIds(1, 41));
});

test('a lane is read later from the day of its first unfinished delivery, also if that was handed over', async () => {
  const { gate, inProgress, lane, delivering } = await drainHanded(status(500));
  const next = await logOne();
  const deliveries = next.deliveries!.map((each) => ({ ...each, readFromDay: '2100-01-01' }));
  expect(inProgress.tell({ ...next, deliveries })).toBe(true);
  gate.open();
  expect(await delivering).toMatchObject({ outcome: 'waiting' });
  const { rows } = await sql<{ readFromDay: string | null }>`
    select read_from_day::text as "readFromDay" from lanes
     where environment_id = ${world.environmentId}`.execute(database);
  expect(rows).toEqual([{ readFromDay: lane.deliveries?.[0]?.readFromDay }]);
});

test('the next page of the log is read while deliveries of the page before are still sent', async () => {
  await world.log(64);
  const { reads, store } = watchReads(world);
  expect(await world.deliver({ store })).toEqual({ outcome: 'idle' });
  expect(reads.map(({ after }) => after)).toEqual([0, 32]);
  expect(reads[1]?.sentBefore).toBeLessThan(32);
  expect(world.sent).toEqual(eventIds(1, 64));
});

test('a lane whose head is probed has read its head only', async () => {
  world = await createFailingLane(database);
  const { untilMs } = (await world.deliver()) as { untilMs: number };
  world.nowMs = untilMs;
  const gate = holdAnswers(world, OK);
  const { reads, store } = watchReads(world);
  const probing = world.deliver({ store });
  await until(() => world.sent.length === 1);
  expect(reads).toEqual([{ after: 1, limit: 1, sentBefore: 0 }]);
  gate.open();
  expect(await probing).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(eventIds(2, 5));
});

test('a head that was claimed before the clock was set back is not read before its time', async () => {
  world = await createFailingLane(database);
  const { untilMs } = (await world.deliver()) as { untilMs: number };
  world.nowMs = untilMs;
  const claimedAtMs = performance.now();
  const claim = { lane: world.key, leaseMs: LEASE_MS, holderProcessId: 0 };
  const claimed = (await storeOf(world).claim(claim))!;
  world.nowMs = untilMs - 1;
  const { reads, store } = watchReads(world);
  const outcome = await world.deliver({ store }, { claimed, claimedAtMs });
  expect(outcome).toEqual({ outcome: 'waiting', untilMs });
  expect(reads).toEqual([]);
});

test('progress is stored by one statement at a time, and each result arrives', async () => {
  await allowEight(world);
  await world.log(2);
  const answer = holdEach(world, eventIds(1, 2), status(500));
  const store = storeOf(world);
  const mayStore = createGate();
  let [underWay, most] = [0, 0];
  const keep: typeof store.keep = async (report) => {
    most = Math.max(most, ++underWay);
    await mayStore.opened;
    const after = await store.keep(report);
    underWay--;
    return after;
  };
  const delivering = world.deliver({ store: { ...store, keep } });
  await until(() => world.sent.length === 2);
  answer('e1');
  await until(() => underWay === 1);
  answer('e2');
  await nextTurn();
  await nextTurn();
  mayStore.open();
  expect(await delivering).toMatchObject({ outcome: 'waiting' });
  expect(most).toBe(1);
  expect(await world.attempts(1)).toHaveLength(1);
  expect(await world.attempts(2)).toHaveLength(1);
});

test('a request waits for its rate beside one that hangs, and starts when its time has come', async () => {
  world = await createLaneWorld(database, { rateLimitPerSecond: 2 });
  // A success, so that the concurrency limit is two.
  await world.log(1);
  await world.deliverAll();
  world.nowMs += 1_000;
  await world.log(2);
  const answer = holdEach(world, ['e2']);
  const itsTime = createGate();
  const pausesMs: number[] = [];
  const delivering = world.deliver({
    pause(durationMs) {
      pausesMs.push(durationMs);
      return itsTime.opened;
    },
  });
  await until(() => pausesMs.length === 1);
  expect(world.sent).toEqual(eventIds(1, 2));
  world.nowMs += pausesMs[0]!;
  itsTime.open();
  await until(() => world.sent.length === 3);
  answer('e2');
  expect(await delivering).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(eventIds(1, 3));
});

test('a drain that has ended leaves no timer', async () => {
  const running = new Set<unknown>();
  // The process has other timers too, of test files that ran before.
  const delivery = new AsyncLocalStorage<boolean>();
  let startedCount = 0;
  const { setTimeout: start, clearTimeout: end } = globalThis;
  const started = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((
    run: () => void,
    durationMs: number,
  ) => {
    const timer = start(() => {
      running.delete(timer);
      run();
    }, durationMs);
    // A longer one may be of a connection to the database.
    if (delivery.getStore() && durationMs < 1_000) {
      startedCount++;
      running.add(timer);
    }
    return timer;
  }) as typeof setTimeout);
  const ended = vi.spyOn(globalThis, 'clearTimeout').mockImplementation((timer) => {
    running.delete(timer);
    end(timer);
  });
  onTestFinished(() => {
    started.mockRestore();
    ended.mockRestore();
  });
  await world.log(1);
  expect(await delivery.run(true, () => world.deliver())).toEqual({ outcome: 'idle' });
  expect(running.size).toBe(0);
  expect(startedCount).toBeGreaterThan(0);
});

test('a lane without a request in flight does not wait for its rate, but is given back', async () => {
  world = await createLaneWorld(database, { rateLimitPerSecond: 1 });
  await world.log(2);
  let pauseCount = 0;
  const pause = async (): Promise<void> => void pauseCount++;
  expect(await world.deliver({ pause })).toMatchObject({ outcome: 'waiting' });
  expect([world.sent, pauseCount]).toEqual([['e1'], 0]);
});
