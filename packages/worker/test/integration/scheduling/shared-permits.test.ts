/**
 * Lanes that want more requests than there are permits.
 *
 * Their logs are real, in Postgres.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { expect, test } from 'vitest';
import { FairPermits } from '../../../src/scheduling/fair-permits.ts';
import { createGate, createLaneWorld, OK, until } from '../support/lane-world.ts';

test('a lane that waits for one more permit has its turns in a row in the one that it holds', async () => {
  const { database } = await createTestDatabase();
  const turns: number[] = [];
  const permits = new FairPermits({
    permitsMax: 1,
    slowMax: 0,
    slowAfterMs: 50,
    // A millisecond a request.
    monotonicNow: () => turns.length,
    idleTimeMs: () => 0,
  });
  const worlds = [await createLaneWorld(database), await createLaneWorld(database)];
  for (const world of worlds) {
    await world.log(64);
    world.behave = async () => {
      turns.push(world.environmentId);
      // The first one ends when the other lane waits.
      if (turns.length === 1) await until(() => permits.waitingCount > 0);
      await nextTurn();
      return OK;
    };
  }
  await Promise.all(
    worlds.map((world) => world.deliverAll({ permits: { deliveries: permits, probes: permits } })),
  );
  expect(turns).toHaveLength(128);
  // A lane that gave its permit away because it waits for a further one would alternate: 63 changes.
  const changes = turns.filter((lane, index) => index > 0 && lane !== turns[index - 1]);
  expect(changes.length).toBeLessThanOrEqual(8);
});

test('a lane whose turn comes after it has used its rate in the permit that it holds waits for its rate', async () => {
  const { database } = await createTestDatabase();
  const world = await createLaneWorld(database, { rateLimitPerSecond: 2 });
  // A success, so that the concurrency limit is two.
  await world.log(1);
  await world.deliverAll();
  world.nowMs += 1_000;
  await world.log(3);
  const permits = new FairPermits({
    permitsMax: 2,
    slowMax: 0,
    slowAfterMs: 50,
    monotonicNow: () => 0,
    idleTimeMs: () => 0,
  });
  const another = permits.tryAcquire({ accountId: 0, lane: 'another' });
  const gates = new Map(['e2', 'e3', 'e4'].map((eventId) => [eventId, createGate()]));
  world.behave = async (_, eventId) => {
    await gates.get(eventId)?.opened;
    return OK;
  };
  const pauses: ReturnType<typeof createGate>[] = [];
  const delivering = world.deliver({
    permits: { deliveries: permits, probes: permits },
    pause: () => {
      const gate = createGate();
      pauses.push(gate);
      return gate.opened;
    },
  });
  await until(() => pauses.length === 1);
  expect(world.sent).toEqual(['e1', 'e2']);
  world.nowMs += 500;
  pauses[0]?.open();
  await until(() => permits.waitingCount === 1);
  gates.get('e2')?.open();
  await until(() => world.sent.length === 3);
  another?.release();
  expect(world.sent).toEqual(['e1', 'e2', 'e3']);
  await until(() => pauses.length === 2);
  world.nowMs += 500;
  pauses[1]?.open();
  await until(() => world.sent.length === 4);
  for (const gate of gates.values()) gate.open();
  expect(await delivering).toEqual({ outcome: 'idle' });
});
