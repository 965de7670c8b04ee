/** Lanes that want more requests at a time than there are slots, with real logs in Postgres. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createTestDatabase } from '@sluice/database/testing';
import { expect, test } from 'vitest';
import { FairSlots } from '../../src/fair-slots.ts';
import { createLaneWorld, OK, until } from './lane-world.ts';

test('a lane that waits for one more slot has its turns in a row in the one that it holds', async () => {
  const { database } = await createTestDatabase();
  const turns: number[] = [];
  const slots = new FairSlots({
    slotsMax: 1,
    slowMax: 0,
    slowAfterMs: 50,
    // A millisecond a request.
    monotonicNow: () => turns.length,
    spareMs: () => 0,
  });
  const worlds = [await createLaneWorld(database), await createLaneWorld(database)];
  for (const world of worlds) {
    await world.log(64);
    world.behave = async () => {
      turns.push(world.environmentId);
      // The first one ends when the other lane waits.
      if (turns.length === 1) await until(() => slots.waitingCount > 0);
      await nextTurn();
      return OK;
    };
  }
  await Promise.all(
    worlds.map((world) => world.deliverAll({ slots: { deliveries: slots, probes: slots } })),
  );
  expect(turns).toHaveLength(128);
  // A lane that gave its slot away because it waits for a further one would alternate: 63 changes.
  const changes = turns.filter((lane, index) => index > 0 && lane !== turns[index - 1]);
  expect(changes.length).toBeLessThanOrEqual(8);
});
