import type { Database } from '@sluice/database/connection/connection';
import { nameOf } from '@sluice/database/delivery/lanes';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { updateWebhook } from '@sluice/database/webhooks/webhooks';
import { longestWaitMs } from '@sluice/domain/delivery/delivery-schedule';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { createLaneReconciler } from '../../../src/maintenance/reconcile-lanes.ts';
import {
  createLaneWorld,
  DAY_MS,
  endLeases,
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

describe('the reconcile loop', () => {
  /** One process' reconcile loop, on the test's clock. */
  function createReconciler(failing = new Set<string>()) {
    let nowMs = 0;
    const woken: string[] = [];
    const reconcileLanes = createLaneReconciler({
      database,
      now: () => nowMs,
      probeWaitMsMax: longestWaitMs(POLICY),
      async wakeLanes(lanes) {
        const names = lanes.map(nameOf);
        woken.push(...names.filter((name) => !failing.has(name)));
        if (names.some((name) => failing.has(name))) throw new Error('the broker is away');
      },
    });
    return async (atMs: number): Promise<string[]> => {
      nowMs = atMs;
      await reconcileLanes();
      return woken.splice(0);
    };
  }
  /** Lanes that a process wakes that has just begun to reconcile. */
  async function reconcile(nowMs: number): Promise<string[]> {
    const reconcileAgain = createReconciler();
    expect(await reconcileAgain(nowMs)).toEqual([]);
    return reconcileAgain(nowMs);
  }

  test('finds a lane with unannounced work, and skips a lane that is idle, held or paused', async () => {
    const world = await createLaneWorld(database);
    expect(await reconcile(Date.now())).not.toContain(nameOf(world));
    await world.log(1);
    expect(await reconcile(Date.now())).toContain(nameOf(world));

    const gate = holdAnswers(world, OK);
    const delivering = world.deliver();
    await until(() => world.sent.length === 1);
    expect(await reconcile(Date.now())).not.toContain(nameOf(world));
    gate.open();
    await delivering;
    expect(await reconcile(Date.now() + DAY_MS)).not.toContain(nameOf(world));

    await world.log(1);
    await updateWebhook(
      database,
      world.environmentId,
      world.webhookId,
      { disabled: true },
      Date.now(),
    );
    expect(await reconcile(Date.now() + DAY_MS)).not.toContain(nameOf(world));
  });

  test('skips deliveries that were just logged, and lanes that were claimed since its last look', async () => {
    const world = await createLaneWorld(database);
    const reconcileAgain = createReconciler();
    await world.log(1);
    expect(await reconcileAgain(Date.now())).not.toContain(nameOf(world));
    expect(await world.deliver()).toEqual({ outcome: 'idle' });
    await world.log(1);
    expect(await reconcileAgain(Date.now())).not.toContain(nameOf(world));
    expect(await reconcileAgain(Date.now())).toContain(nameOf(world));
    // That wake-up is on its way now; if it is lost as well, the lane is found again.
    expect(await reconcileAgain(Date.now())).not.toContain(nameOf(world));
    expect(await reconcileAgain(Date.now())).toContain(nameOf(world));
  });

  test('wakes again lanes that could not be woken, and the others meanwhile', async () => {
    const [first, second] = [await createLaneWorld(database), await createLaneWorld(database)];
    const failing = new Set([nameOf(first)]);
    const reconcileAgain = createReconciler(failing);
    await first.log(1);
    await second.log(1);
    await reconcileAgain(Date.now());
    await expect(reconcileAgain(Date.now())).rejects.toThrow('the broker is away');
    failing.clear();
    // The lanes woken beside it, and the ones that the next reconcile loops find.
    expect(await reconcileAgain(Date.now())).toContain(nameOf(second));
    expect(await reconcileAgain(Date.now())).toContain(nameOf(first));
  });

  test('finds a failing lane when its retry probe is due, not before', async () => {
    const world = await createLaneWorld(database);
    world.nowMs = Date.now();
    await world.log(1);
    world.behave = () => status(500);
    const outcome = await world.deliver();
    if (outcome.outcome !== 'waiting') throw new Error(outcome.outcome);
    expect(await reconcile(outcome.untilMs - 1)).not.toContain(nameOf(world));
    expect(await reconcile(outcome.untilMs)).toContain(nameOf(world));
  });

  test('leaves a lane alone that waits for its rate, and finds it when it may send', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    const nextStartMs = Date.now() + 1_000;
    await sql`
      update lanes set next_start_at = ${new Date(nextStartMs)}
       where webhook_id = ${world.webhookId}`.execute(database);
    expect(await reconcile(nextStartMs - 1)).not.toContain(nameOf(world));
    expect(await reconcile(nextStartMs)).toContain(nameOf(world));
    // A time so far away was written by a clock that was ahead.
    expect(await reconcile(nextStartMs - DAY_MS)).toContain(nameOf(world));
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
    expect(await reconcile(rightMs)).toContain(nameOf(world));
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(['e1', 'e1', 'e2']);
  });

  test('leaves a retry probe alone that clocks a few minutes apart put off: an hour is not cut short by it', async () => {
    const world = await createLaneWorld(database);
    const rightMs = Date.now();
    world.nowMs = rightMs + 300_000;
    await world.log(1);
    world.behave = () => status(500);
    await world.deliver();
    world.nowMs = rightMs;
    expect(await reconcile(rightMs)).not.toContain(nameOf(world));
    expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
    expect(world.sent).toEqual(['e1']);
  });

  test('finds a lane whose worker died, once its lease has ended', async () => {
    const world = await createLaneWorld(database);
    await world.log(1);
    const gate = holdAnswers(world, OK);
    const frozen = world.deliver();
    await until(() => world.sent.length === 1);
    expect(await reconcile(Date.now())).not.toContain(nameOf(world));
    await endLeases(world);
    expect(await reconcile(Date.now())).toContain(nameOf(world));
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
