/** Waits of a drain for permits and for answers. */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FairPermits } from '../../../src/scheduling/fair-permits.ts';
import { IdleTime } from '../../../src/scheduling/idle-time.ts';
import { createFewPermits } from '../support/few-permits.ts';
import {
  allowEight,
  createFailingLane,
  createGate,
  createLaneWorld,
  endStoredLeases,
  eventIds,
  holdAnswers,
  holdEach,
  LEASE_MS,
  OK,
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

/** All requests of one kind. */
const ofBoth = ({ permits }: ReturnType<typeof createFewPermits>) => ({
  permits: { deliveries: permits, probes: permits },
});

describe('permits', () => {
  test('are one for each request, and a drain gives all of them back', async () => {
    const few = createFewPermits(2);
    const { permits } = few;
    const endOthers = few.hold(2);
    await world.log(3);
    const delivering = world.deliver(ofBoth(few));
    await until(() => permits.waitingCount === 1 || world.sent.length > 0);
    expect(world.sent).toEqual([]);
    endOthers();
    expect(await delivering).toEqual({ outcome: 'idle' });
    expect(permits.heldCount).toBe(0);
    await world.log(3);
    expect(await world.deliver(ofBoth(few))).toEqual({ outcome: 'idle' });
    expect(permits.heldCount).toBe(0);
    expect(world.sent).toEqual(eventIds(1, 6));
  });

  test('of probes are separate, and a lane that resumes waits for a permit of deliveries', async () => {
    const [deliveries, probes] = [createFewPermits(1), createFewPermits(1)];
    const permits = { deliveries: deliveries.permits, probes: probes.permits };
    await world.log(1);
    const endProbes = probes.hold(1);
    expect(await world.deliver({ permits })).toEqual({ outcome: 'idle' });
    endProbes();
    world = await createFailingLane(database);
    const { untilMs } = (await world.deliver()) as { untilMs: number };
    world.nowMs = untilMs;
    const endDeliveries = deliveries.hold(1);
    const delivering = world.deliver({ permits });
    await until(() => permits.deliveries.waitingCount === 1);
    expect(world.sent).toEqual(['e2']);
    expect(permits.probes.heldCount).toBe(0);
    endDeliveries();
    expect(await delivering).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(2, 5));
    expect(permits.deliveries.heldCount).toBe(0);
  });

  test('of one account go first to the webhook that has had less', async () => {
    const few = createFewPermits(1);
    const [hasHadMore, hasHadNone] = [world, await createLaneWorld(database)];
    const order: LaneWorld[] = [];
    for (const each of [hasHadMore, hasHadNone]) {
      await each.log(1);
      each.behave = () => {
        order.push(each);
        few.use(-1, 100);
        return OK;
      };
    }
    await hasHadMore.deliver(ofBoth(few));
    await hasHadMore.log(1);
    const endOthers = few.hold(1);
    const delivering = [];
    for (const each of [hasHadMore, hasHadNone]) {
      delivering.push(each.deliver(ofBoth(few)));
      await until(() => few.permits.waitingCount === delivering.length);
    }
    endOthers();
    await Promise.all(delivering);
    expect(order).toEqual([hasHadMore, hasHadNone, hasHadMore]);
  });

  test('stay with a lane for a few requests in a row, although another account waits, and not for all', async () => {
    const few = createFewPermits(1);
    await world.log(20);
    const answer = holdEach(world, ['e1']);
    const delivering = world.deliver(ofBoth(few));
    await until(() => world.sent.length === 1);
    let sentBefore = 0;
    few.permits.wait({ accountId: -1, lane: 'waits' }, () => (sentBefore = world.sent.length));
    answer('e1');
    expect(await delivering).toEqual({ outcome: 'idle' });
    expect(sentBefore).toBeGreaterThan(1);
    expect(sentBefore).toBeLessThan(20);
  });

  test('are given back, and the rate stays unused, if the clock is set back before the retry probe begins', async () => {
    world = await createFailingLane(database);
    const { untilMs } = (await world.deliver()) as { untilMs: number };
    await world.change({ rateLimitPerSecond: 1 });
    world.nowMs = untilMs;
    const probes = new FairPermits({
      permitsMax: 1,
      slowMax: 0,
      slowAfterMs: 50,
      monotonicNow: () => 0,
      idleTimeMs() {
        world.nowMs = untilMs - 1;
        return 0;
      },
    });
    const permits = { deliveries: probes, probes };
    expect(await world.deliver({ permits })).toEqual({ outcome: 'waiting', untilMs });
    expect([world.sent, probes.heldCount]).toEqual([[], 0]);
  });
});

describe('a drain that waits for a permit', () => {
  test('leaves the line when its time slice is over, and is woken again', async () => {
    const few = createFewPermits(1);
    const endOthers = few.hold(1);
    await world.log(1);
    const leases = { timeoutMs: 4_000, leaseMs: LEASE_MS, timeSliceMs: 30 };
    expect(await world.deliver({ ...ofBoth(few), leases })).toEqual({ outcome: 'more' });
    expect(few.permits.waitingCount).toBe(0);
    expect(world.wakes).toEqual(['now']);
    endOthers();
    expect(await world.deliverAll(ofBoth(few))).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(['e1']);
  });

  test('asks again within its turn, so that no account that has had more gets the next one', async () => {
    const few = createFewPermits(2);
    const [hasHadMore, durationMs] = [-1, 100];
    few.use(hasHadMore, durationMs);
    const endOthers = few.hold(2);
    await allowEight(world);
    await world.log(2);
    const gate = holdAnswers(world, OK);
    const delivering = world.deliver(ofBoth(few));
    await until(() => few.permits.waitingCount === 1);
    let hasCome = false;
    few.permits.wait({ accountId: hasHadMore, lane: 'waits' }, () => (hasCome = true));
    endOthers();
    expect([world.sent, hasCome]).toEqual([eventIds(1, 2), false]);
    gate.open();
    expect(await delivering).toEqual({ outcome: 'idle' });
    expect(hasCome).toBe(true);
  });

  test('sends no request if its turn comes too late for its lease', async () => {
    const few = createFewPermits(1);
    const endOthers = few.hold(1);
    await world.log(1);
    const delivering = world.deliver(ofBoth(few));
    await until(() => few.permits.waitingCount === 1);
    world.monotonicAheadMs += LEASE_MS - 3_000;
    endOthers();
    expect(await delivering).toEqual({ outcome: 'more' });
    expect(world.sent).toEqual([]);
    expect(few.permits.heldCount).toBe(0);
  });

  test('and loses its lane leaves the line at once, and ends with its requests', async () => {
    const few = createFewPermits(2);
    few.hold(1);
    await allowEight(world);
    await world.log(3);
    const answer = holdEach(world, eventIds(1, 2));
    const store = storeOf(world);
    let keepCount = 0;
    const keep: typeof store.keep = (report) => {
      keepCount++;
      return store.keep(report);
    };
    let hasEnded = false;
    const delivering = world
      .deliver({ ...ofBoth(few), store: { ...store, keep } })
      .finally(() => (hasEnded = true));
    await until(() => few.permits.waitingCount === 1);
    await endStoredLeases(world);
    expect(await store.claim({ lane: world.key, leaseMs: LEASE_MS })).toBeDefined();
    answer('e1');
    await until(() => keepCount === 1 && few.permits.waitingCount === 0);
    await nextTurn();
    expect([hasEnded, few.permits.heldCount]).toEqual([false, 2]);
    answer('e2');
    expect(await delivering).toEqual({ outcome: 'fenced' });
    expect([keepCount, few.permits.heldCount]).toEqual([1, 1]);
    expect(world.sent).toEqual(eventIds(1, 2));
  });
});

describe('a drain is still', () => {
  /** Idle time that the test gives to the process. */
  function createIdleTime() {
    let [idleMs, nowMs] = [0, 0];
    const idleTime = new IdleTime({ idleMs: () => idleMs, monotonicNow: () => ++nowMs });
    return { idleTime, pass: (durationMs: number) => void (idleMs += durationMs) };
  }

  test('once a request has hung for so much idle time, and not before it is sent or after its answer', async () => {
    await world.log(2);
    const answer = holdEach(world, eventIds(1, 2));
    const { idleTime, pass } = createIdleTime();
    const mayLoad = createGate();
    const store = storeOf(world);
    let isLoading = false;
    const load: typeof store.load = async (request) => {
      isLoading = true;
      await mayLoad.opened;
      return store.load(request);
    };
    const delivery = world.begin({ idleTime, store: { ...store, load } });
    await until(() => isLoading);
    pass(1_000);
    expect(delivery.isStill(1_000)).toBe(false);
    mayLoad.open();
    await until(() => world.sent.length === 1);
    expect([delivery.isStill(1_000), delivery.isStill(1_001)]).toEqual([true, false]);
    answer('e1');
    await until(() => world.sent.length === 2);
    pass(20);
    expect([delivery.isStill(20), delivery.isStill(21)]).toEqual([true, false]);
    answer('e2');
    expect(await delivery.ended).toEqual({ outcome: 'idle' });
    expect(delivery.isStill(0)).toBe(false);
  });

  test('only if no delivery waits for a permit', async () => {
    const few = createFewPermits(2);
    const endOthers = few.hold(1);
    await allowEight(world);
    await world.log(2);
    const gate = holdAnswers(world, OK);
    const { idleTime, pass } = createIdleTime();
    const delivery = world.begin({ ...ofBoth(few), idleTime });
    await until(() => few.permits.waitingCount === 1);
    pass(1_000);
    expect([world.sent, delivery.isStill(1)]).toEqual([['e1'], false]);
    endOthers();
    expect([world.sent, delivery.isStill(1)]).toEqual([['e1', 'e2'], true]);
    gate.open();
    expect(await delivery.ended).toEqual({ outcome: 'idle' });
  });
});
