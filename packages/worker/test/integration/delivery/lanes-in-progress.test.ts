/** Lanes that a process drains itself: its own logs for them, and their wake-ups. */
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import type { LoggedLane } from '@sluice/database/delivery/logged-lanes';
import type { LaneStore } from '../../../src/lane/lane-store.ts';
import { LanesInProgress } from '../../../src/delivery/lanes-in-progress.ts';
import {
  createGate,
  createLaneWorld,
  endLeases,
  eventIds,
  holdAnswers,
  OK,
  storeOf,
  until,
} from '../support/lane-world.ts';

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

describe('a drain', () => {
  test('sends deliveries that this process logs meanwhile at once, and refuses them after its end', async () => {
    const world = await createLaneWorld(database);
    await world.log(3);
    const gate = createGate();
    world.behave = async (_, eventId) => {
      if (eventId === 'e3') await gate.opened;
      return OK;
    };
    const inProgress = new LanesInProgress();
    const store = storeOf(world);
    const delivering = world.deliver({
      inProgress,
      // No progress is stored until then, so Postgres' own answer about the end of the log comes too late.
      store: { ...store, keep: (report) => gate.opened.then(() => store.keep(report)) },
    });
    await until(() => world.sent.length === 3);
    for (const lane of await world.log(4)) expect(inProgress.tell(lane)).toBe(true);
    await until(() => world.sent.length === 7);
    gate.open();
    expect(await delivering).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(1, 7));
    for (const lane of await world.log(1)) expect(inProgress.tell(lane)).toBe(false);
  });

  test('is all that a wake-up of its lane needs, in the same process', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    const gate = holdAnswers(world, OK);
    const inProgress = new LanesInProgress();
    const delivering = world.deliver({ inProgress });
    await until(() => world.sent.length === 1);
    await world.log(2);
    const store: LaneStore = {
      ...storeOf(world),
      claim: () => Promise.reject(new Error('nobody should ask')),
      find: () => Promise.reject(new Error('nobody should ask')),
    };
    expect(await world.deliver({ inProgress, store })).toEqual({ outcome: 'held' });
    gate.open();
    // Deliveries logged meanwhile are not forgotten.
    const outcome = await delivering;
    if (outcome.outcome === 'more') await world.deliverAll({ inProgress });
    else expect(outcome).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(1, 3));
  });

  test('that never ends is shown by its age, and once its lease has ended its lane is drained anew here too', async () => {
    const world = await createLaneWorld(database);
    await world.log(3);
    const inProgress = new LanesInProgress();
    expect(inProgress.oldestBeganAtMs).toBeUndefined();
    const gate = createGate();
    const store = storeOf(world);
    const beganAtMs = performance.now();
    const hanging = world.deliver({
      inProgress,
      store: { ...store, load: (request) => gate.opened.then(() => store.load(request)) },
    });
    await until(() => inProgress.count === 1);
    const oldestBeganAtMs = inProgress.oldestBeganAtMs as number;
    expect(oldestBeganAtMs).toBeGreaterThanOrEqual(beganAtMs);
    expect(await world.deliver({ inProgress })).toEqual({ outcome: 'held' });
    await endLeases(world);
    // Its loggers have the lane woken, and the wake-up takes the lane.
    const [logged] = await world.log(1);
    expect(inProgress.tell(logged as LoggedLane)).toBe(false);
    expect(await world.deliver({ inProgress })).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(1, 4));
    expect(inProgress.oldestBeganAtMs).toBe(oldestBeganAtMs);
    gate.open();
    await hanging;
    expect(world.sent).toEqual(eventIds(1, 4));
    expect(inProgress.oldestBeganAtMs).toBeUndefined();
  });

  test('sends deliveries that are logged while it gives its lane back, by itself or after a wake-up', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    const inProgress = new LanesInProgress();
    const store = storeOf(world);
    const told: boolean[] = [];
    const log = async (): Promise<void> => {
      for (const lane of await world.log(1)) told.push(inProgress.tell(lane));
    };
    const outcome = await world.deliver({
      inProgress,
      store: {
        ...store,
        async keep(report) {
          // On both sides of the statement that gives the lane back.
          if (report.progress.isLast) await log();
          const after = await store.keep(report);
          if (report.progress.isLast) await log();
          return after;
        },
      },
    });
    expect(told).toEqual([false, false]);
    expect(outcome).toEqual({ outcome: 'more' });
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(1, 3));
  });
});
