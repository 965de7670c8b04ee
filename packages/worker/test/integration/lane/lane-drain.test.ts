/** Reads, statements and endings of a drain. */
import type { LogRequest } from '@sluice/database/delivery/logged-deliveries';
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { LanesInProgress } from '../../../src/delivery/lanes-in-progress.ts';
import { FairPermits } from '../../../src/scheduling/fair-permits.ts';
import {
  createFailingLane,
  createGate,
  createLaneWorld,
  endLeases,
  eventIds,
  holdAnswers,
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

/** As if it had been growing for a while. */
const allowEight = () =>
  sql`update lanes set send_window = 8 where environment_id = ${world.environmentId}`.execute(
    database,
  );

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
  await allowEight();
  await world.log(1_100);
  const gate = createGate();
  world.behave = async (_, eventId) => {
    if (eventId === 'e1') await gate.opened;
    return OK;
  };
  const { reads, store } = watchReads(world);
  const delivering = world.deliver({ store });
  await until(async () => ((await world.lane())?.attemptedThrough ?? 0) >= 1_024);
  expect(world.sent).toEqual(eventIds(1, 1_024));
  expect(reads.every(({ after, limit }) => after + limit <= 1_024)).toBe(true);
  gate.open();
  expect(await delivering).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(eventIds(1, 1_100));
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

test('progress is stored by one statement at a time, and each result arrives', async () => {
  await allowEight();
  await world.log(2);
  const answers = new Map(eventIds(1, 2).map((eventId) => [eventId, createGate()]));
  world.behave = async (_, eventId) => {
    await answers.get(eventId)?.opened;
    return status(500);
  };
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
  answers.get('e1')?.open();
  await until(() => underWay === 1);
  answers.get('e2')?.open();
  await nextTurn();
  await nextTurn();
  mayStore.open();
  expect(await delivering).toMatchObject({ outcome: 'waiting' });
  expect(most).toBe(1);
  expect(await world.attempts(1)).toHaveLength(1);
  expect(await world.attempts(2)).toHaveLength(1);
});

test('a request without any outcome ends the drain with its error, and the delivery is sent again', async () => {
  await world.log(2);
  world.behave = () => {
    throw new Error('broken');
  };
  await expect(world.deliver()).rejects.toThrow('broken');
  world.behave = () => OK;
  await endLeases(world);
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(['e1', 'e1', 'e2']);
});

test('a request waits for its rate beside one that hangs, and starts when its time has come', async () => {
  world = await createLaneWorld(database, { rateLimitPerSecond: 2 });
  // A success, so that the concurrency limit is two.
  await world.log(1);
  await world.deliverAll();
  world.nowMs += 1_000;
  await world.log(2);
  const gate = createGate();
  world.behave = async (_, eventId) => {
    if (eventId === 'e2') await gate.opened;
    return OK;
  };
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
  gate.open();
  expect(await delivering).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(eventIds(1, 3));
});

test('each request has a permit of its own, and a drain gives all of them back', async () => {
  const permits = new FairPermits({
    permitsMax: 2,
    slowMax: 0,
    slowAfterMs: 50,
    monotonicNow: () => 0,
    idleTimeMs: () => 0,
  });
  const deps = { permits: { deliveries: permits, probes: permits } };
  const others = [1, 2].map((lane) => permits.tryAcquire({ accountId: 0, lane: `${lane}` }));
  await world.log(3);
  const delivering = world.deliver(deps);
  await until(() => permits.waitingCount === 1 || world.sent.length > 0);
  expect(world.sent).toEqual([]);
  for (const other of others) other?.release();
  expect(await delivering).toEqual({ outcome: 'idle' });
  expect(permits.heldCount).toBe(0);
  await world.log(3);
  expect(await world.deliver(deps)).toEqual({ outcome: 'idle' });
  expect(permits.heldCount).toBe(0);
  expect(world.sent).toEqual(eventIds(1, 6));
});
