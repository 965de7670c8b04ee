import type { Database } from '@sluice/database/connection/connection';
import { nameOf } from '@sluice/database/delivery/lanes';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { updateWebhook } from '@sluice/database/webhooks/webhooks';
import { longestWaitMs } from '@sluice/domain/delivery/delivery-schedule';
import { beforeAll, describe, expect, test } from 'vitest';
import { createLaneSweep } from '../../../src/maintenance/sweep-lanes.ts';
import {
  createLaneWorld,
  DAY_MS,
  holdAnswers,
  OK,
  POLICY,
  status,
  until,
} from '../support/lane-world.ts';

let database: Database;

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

describe('the sweep', () => {
  /** One process' sweep, on the test's clock. */
  function createSweep(failing = new Set<string>()) {
    let nowMs = 0;
    const woken: string[] = [];
    const sweepLanes = createLaneSweep({
      database,
      now: () => nowMs,
      probeWaitMsMax: longestWaitMs(POLICY),
      async wakeLane(lane) {
        if (failing.has(nameOf(lane))) throw new Error('the broker is away');
        woken.push(nameOf(lane));
      },
    });
    return async (atMs: number): Promise<string[]> => {
      nowMs = atMs;
      await sweepLanes();
      return woken.splice(0);
    };
  }
  /** What a process wakes that has just begun to sweep. */
  async function sweep(nowMs: number): Promise<string[]> {
    const sweepAgain = createSweep();
    expect(await sweepAgain(nowMs)).toEqual([]);
    return sweepAgain(nowMs);
  }

  test('finds a lane with work that nobody was told of, and none that is idle, held or paused', async () => {
    const world = await createLaneWorld(database);
    expect(await sweep(Date.now())).not.toContain(nameOf(world));
    await world.log(1);
    expect(await sweep(Date.now())).toContain(nameOf(world));

    const gate = holdAnswers(world, OK);
    const delivering = world.deliver();
    await until(() => world.sent.length === 1);
    expect(await sweep(Date.now())).not.toContain(nameOf(world));
    gate.open();
    await delivering;
    expect(await sweep(Date.now() + DAY_MS)).not.toContain(nameOf(world));

    await world.log(1);
    await updateWebhook(
      database,
      world.environmentId,
      world.webhookId,
      { disabled: true },
      Date.now(),
    );
    expect(await sweep(Date.now() + DAY_MS)).not.toContain(nameOf(world));
  });

  test('leaves alone what has just been logged, or has been claimed since it looked last', async () => {
    const world = await createLaneWorld(database);
    const sweepAgain = createSweep();
    await world.log(1);
    expect(await sweepAgain(Date.now())).not.toContain(nameOf(world));
    expect(await world.deliver()).toEqual({ outcome: 'idle' });
    await world.log(1);
    expect(await sweepAgain(Date.now())).not.toContain(nameOf(world));
    expect(await sweepAgain(Date.now())).toContain(nameOf(world));
    // That wake-up is on its way now; where it is lost as well, the lane is found again.
    expect(await sweepAgain(Date.now())).not.toContain(nameOf(world));
    expect(await sweepAgain(Date.now())).toContain(nameOf(world));
  });

  test('wakes again what could not be woken, and the others meanwhile', async () => {
    const [first, second] = [await createLaneWorld(database), await createLaneWorld(database)];
    const failing = new Set([nameOf(first)]);
    const sweepAgain = createSweep(failing);
    await first.log(1);
    await second.log(1);
    await sweepAgain(Date.now());
    await expect(sweepAgain(Date.now())).rejects.toThrow('the broker is away');
    failing.clear();
    // What was woken beside it, and what the next sweeps find.
    expect(await sweepAgain(Date.now())).toContain(nameOf(second));
    expect(await sweepAgain(Date.now())).toContain(nameOf(first));
  });

  test('finds a failing lane when its probe is due, not before', async () => {
    const world = await createLaneWorld(database);
    world.nowMs = Date.now();
    await world.log(1);
    world.behave = () => status(500);
    const outcome = await world.deliver();
    if (outcome.outcome !== 'waiting') throw new Error(outcome.outcome);
    expect(await sweep(outcome.untilMs - 1)).not.toContain(nameOf(world));
    expect(await sweep(outcome.untilMs)).toContain(nameOf(world));
  });

  // A worker whose clock was wrong for a while: its lanes would stand for as long.
  test('finds a failing lane whose probe is further away than any wait, and it is probed at once', async () => {
    const world = await createLaneWorld(database);
    const rightMs = Date.now();
    world.nowMs = rightMs + 5 * DAY_MS;
    await world.log(2);
    world.behave = () => status(500);
    expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
    world.nowMs = rightMs;
    world.behave = () => OK;
    expect(await sweep(rightMs)).toContain(nameOf(world));
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(['e1', 'e1', 'e2']);
  });

  test('leaves a probe alone that clocks a few minutes apart put off: an hour is not cut short by it', async () => {
    const world = await createLaneWorld(database);
    const rightMs = Date.now();
    world.nowMs = rightMs + 300_000;
    await world.log(1);
    world.behave = () => status(500);
    await world.deliver();
    world.nowMs = rightMs;
    expect(await sweep(rightMs)).not.toContain(nameOf(world));
    expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
    expect(world.sent).toEqual(['e1']);
  });

  test('finds a lane whose worker died, once its lease has ended', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    const gate = holdAnswers(world, OK);
    const frozen = world.deliver({ leases: { timeoutMs: 10, leaseMs: 300, sliceMs: 100 } });
    await until(() => world.sent.length === 1);
    expect(await sweep(Date.now())).not.toContain(nameOf(world));
    await until(async () => (await sweep(Date.now())).includes(nameOf(world)));
    gate.open();
    await frozen;
  });

  test('and the queue: a wake-up that cannot be sent does not fail the delivery', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    world.behave = () => status(500);
    const wakeLaneAt = async (): Promise<void> => {
      throw new Error('the broker is away');
    };
    expect(await world.deliver({ wakeLaneAt })).toMatchObject({ outcome: 'waiting' });
  });
});
