import type { Database } from '@sluice/database/connection';
import { createTestDatabase } from '@sluice/database/testing';
import { updateWebhook } from '@sluice/database/webhooks';
import { beforeAll, describe, expect, test } from 'vitest';
import { sweepLanes } from '../../src/sweep-lanes.ts';
import { createGate, createLaneWorld, DAY_MS, OK, status, until } from './lane-world.ts';

let database: Database;

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

describe('the sweep', () => {
  async function sweep(nowMs: number): Promise<string[]> {
    const woken: string[] = [];
    await sweepLanes({
      database,
      now: () => nowMs,
      wakeLane: async (lane) => void woken.push(`${lane.environmentId}/${lane.webhookId}`),
    });
    return woken;
  }
  const nameOf = (world: { environmentId: number; webhookId: number }): string =>
    `${world.environmentId}/${world.webhookId}`;

  test('finds a lane with work that nobody was told of, and none that is idle, held or paused', async () => {
    const world = await createLaneWorld(database);
    expect(await sweep(Date.now())).not.toContain(nameOf(world));
    await world.log(1);
    expect(await sweep(Date.now())).toContain(nameOf(world));

    const gate = createGate();
    world.behave = async () => {
      await gate.opened;
      return OK;
    };
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

  test('finds a lane whose worker died, once its lease has ended', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    const gate = createGate();
    world.behave = async () => {
      await gate.opened;
      return OK;
    };
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
