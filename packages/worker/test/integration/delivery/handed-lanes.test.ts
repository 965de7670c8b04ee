/** Lanes that a transaction hands over with their log: sent without a claim and without a read, in order, once, under one lease. */
import type { Database } from '@sluice/database/connection/connection';
import type { LoggedLane } from '@sluice/database/delivery/logged-lanes';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { TakenLane } from '../../../src/lane/lane-drain-deps.ts';
import type { LaneStore } from '../../../src/lane/lane-store.ts';
import { LanesInProgress } from '../../../src/delivery/lanes-in-progress.ts';
import {
  createGate,
  createLaneWorld,
  eventIds,
  holdAnswers,
  LEASE_MS,
  OK,
  statesOf,
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

const takingOf = ({ nowMs }: LaneWorld) => ({
  leaseMs: LEASE_MS,
  holderProcessId: 0,
  nowMs,
  countMax: 1,
});
async function logAndTake(people: readonly (number | null)[]): Promise<LoggedLane> {
  const [lane] = await world.logAbout(people, takingOf(world));
  return lane as LoggedLane;
}
function takenOf({ claimed, deliveries }: LoggedLane): TakenLane {
  if (!claimed) throw new Error('the lane was not taken');
  const taken = { claimed, claimedAtMs: performance.now() };
  return deliveries ? { ...taken, deliveries } : taken;
}
/** Only the other calls may ask Postgres. */
function storeWithout(...names: readonly (keyof LaneStore)[]): LaneStore {
  const refused = names.map((name) => [
    name,
    () => Promise.reject(new Error(`${name} was called`)),
  ]);
  return { ...storeOf(world), ...(Object.fromEntries(refused) as Partial<LaneStore>) };
}

test('the logged deliveries are sent with one statement, which keeps them and gives the lane back', async () => {
  const lane = await logAndTake([null, null]);
  const store = storeWithout('claim', 'load', 'find');
  let keepCount = 0;
  const keep: LaneStore['keep'] = (report) => {
    keepCount++;
    return store.keep(report);
  };
  const deps = { store: { ...store, keep } };
  expect(await world.deliver(deps, takenOf(lane))).toEqual({ outcome: 'idle' });
  expect(keepCount).toBe(1);
  expect(world.sent).toEqual(eventIds(1, 2));
  expect(await statesOf(world)).toEqual(['e1 event delivered 1', 'e2 event delivered 1']);
  expect(await world.lane()).toMatchObject({ cursor: 2, isHeld: false });
});

test('later deliveries are sent without a read of the log, and behind those about the same person', async () => {
  const gate = createGate();
  world.behave = async (_, eventId) => {
    if (eventId === 'e1') await gate.opened;
    return OK;
  };
  const inProgress = new LanesInProgress();
  await sql`update lanes set send_window = 8 where environment_id = ${world.environmentId}`.execute(
    database,
  );
  const lane = await logAndTake([1]);
  const delivering = world.deliver(
    { inProgress, store: storeWithout('claim', 'load', 'find') },
    takenOf(lane),
  );
  await until(() => world.sent.length === 1);
  const later = await logAndTake([1, 2]);
  expect(later.claimed).toBeUndefined();
  expect(inProgress.tell(later)).toBe(true);
  await until(() => world.sent.length === 2);
  expect(world.sent).toEqual(['e1', 'e3']);
  gate.open();
  expect(await delivering).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(['e1', 'e3', 'e2']);
});

test('deliveries that are handed over out of order are sent once each and in order', async () => {
  const gate = holdAnswers(world, OK);
  const inProgress = new LanesInProgress();
  const lane = await logAndTake([1]);
  const delivering = world.deliver({ inProgress }, takenOf(lane));
  await until(() => world.sent.length === 1);
  const [second, third] = [await logAndTake([1]), await logAndTake([1])];
  expect(inProgress.tell(third)).toBe(true);
  expect(inProgress.tell(second)).toBe(true);
  gate.open();
  const outcome = await delivering;
  if (outcome.outcome === 'more') await world.deliverAll({ inProgress });
  expect(world.sent).toEqual(eventIds(1, 3));
});

test('a delivery that is handed over while the log is read up to it is sent once', async () => {
  const gate = holdAnswers(world, OK);
  const inProgress = new LanesInProgress();
  const store = storeOf(world);
  const mayLoad = createGate();
  let isLoading = false;
  const load: LaneStore['load'] = async (request) => {
    isLoading = true;
    await mayLoad.opened;
    return store.load(request);
  };
  const lane = await logAndTake([1]);
  const delivering = world.deliver({ inProgress, store: { ...store, load } }, takenOf(lane));
  await until(() => world.sent.length === 1);
  const [second, third] = [await logAndTake([1]), await logAndTake([1])];
  expect(inProgress.tell(third)).toBe(true);
  await until(() => isLoading);
  expect(inProgress.tell(second)).toBe(true);
  mayLoad.open();
  gate.open();
  const outcome = await delivering;
  if (outcome.outcome === 'more') await world.deliverAll({ inProgress });
  expect(world.sent).toEqual(eventIds(1, 3));
});

test('the time slice of a lane that is handed over begins with its deliveries', async () => {
  const lane = await logAndTake([null, null]);
  world.behave = async () => {
    world.monotonicAheadMs += 1_000;
    return OK;
  };
  const leases = { timeoutMs: 4_000, leaseMs: LEASE_MS, timeSliceMs: 1_000 };
  expect(await world.deliver({ leases }, takenOf(lane))).toEqual({ outcome: 'more' });
  expect(world.sent).toEqual(['e1']);
});

test('a delivery that fails is the head, and the deliveries handed over behind it wait', async () => {
  world.behave = () => status(500);
  const lane = await logAndTake([1, 1, 2]);
  expect(await world.deliver({}, takenOf(lane))).toMatchObject({ outcome: 'waiting' });
  expect(await world.lane()).toMatchObject({ state: 'failing', isHeld: false });
  expect(world.sent).not.toContain('e2');
  expect((await logAndTake([3]).catch(() => undefined))?.claimed).toBeUndefined();
});

test('with a lease that has nearly ended at the commit no delivery is sent, and the lane is woken again', async () => {
  const lane = await logAndTake([1]);
  const late = { ...takenOf(lane), claimedAtMs: performance.now() - (LEASE_MS - 3_000) };
  expect(await world.deliver({}, late)).toEqual({ outcome: 'more' });
  expect(world.sent).toEqual([]);
  expect(world.wakes).toEqual(['now']);
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(['e1']);
});

test('another worker that took the lane over fences the drain that was handed it', async () => {
  const lane = await logAndTake([1]);
  const gate = holdAnswers(world, OK);
  const delivering = world.deliver({}, takenOf(lane));
  await until(() => world.sent.length === 1);
  await expireLease();
  world.behave = () => OK;
  expect(await world.deliver()).toEqual({ outcome: 'idle' });
  gate.open();
  expect(await delivering).toEqual({ outcome: 'fenced' });
  expect(await statesOf(world)).toEqual(['e1 event delivered 1']);
});

async function expireLease(): Promise<void> {
  await sql`update lanes set lease_until = now() - interval '1 second'
             where environment_id = ${world.environmentId}`.execute(database);
}
