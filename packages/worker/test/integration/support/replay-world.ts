/** Replays of a log in a test: deliveries that were made, and are asked for again. */
import type { Database } from '@sluice/database/connection/connection';
import type { ReplayCriteria } from '@sluice/database/replays/replay-log';
import { startReplay } from '@sluice/database/replays/replay-start';
import { findReplay } from '@sluice/database/replays/replays';
import { BY_TEST } from '@sluice/database/testing/testing';
import { expect } from 'vitest';
import { createLaneWorld, type LaneWorld } from './lane-world.ts';

export const ALL: ReplayCriteria = { states: ['delivered', 'abandoned'] };

/** So many delivered, without a record of the receiver. */
export async function createDelivered(database: Database, count: number): Promise<LaneWorld> {
  const world = await createLaneWorld(database);
  await world.log(count);
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  world.sent.length = 0;
  return world;
}

export async function start(world: LaneWorld, criteria = ALL, ratePerSecond = 1_000) {
  const request = { criteria, ratePerSecond, createdBy: 'a test' };
  const started = await startReplay(world.database, world.key, request, BY_TEST, world.nowMs);
  if (started.outcome !== 'started') throw new Error(started.outcome);
  const key = { ...world.key, replayId: started.replay.replayId };
  return {
    key,
    find: async () => {
      const found = await findReplay(world.database, key);
      if (!found) throw new Error('the replay is gone');
      return found;
    },
  };
}

/** By a clock that runs on, as long as the replay has something to send. */
export async function replayAll(world: LaneWorld, find: () => Promise<{ state: string }>) {
  while ((await find()).state === 'running') {
    await world.replay();
    world.nowMs += 100;
  }
}
