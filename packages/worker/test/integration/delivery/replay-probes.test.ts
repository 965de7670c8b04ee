/**
 * Early retry probes of a blocked replay's endpoint.
 *
 * The endpoint was changed, or a person asks.
 */
import type { Database } from '@sluice/database/connection/connection';
import { probeNow } from '@sluice/database/replays/lane-actions';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { updateWebhook } from '@sluice/database/webhooks/webhooks';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { HOUR_MS, OK, status, type LaneWorld } from '../support/lane-world.ts';
import { createDelivered, replayAll, start } from '../support/replay-world.ts';

let database: Database;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
});

async function enableAnew({ environmentId, webhookId, nowMs }: LaneWorld): Promise<void> {
  for (const disabled of [true, false])
    await updateWebhook(database, environmentId, webhookId, { disabled }, nowMs);
}

test('a changed endpoint is probed at once', async () => {
  const world = await createDelivered(database, 2);
  const { find } = await start(world);
  world.behave = ({ endpoint }) => (endpoint.includes('elsewhere') ? OK : status(404));
  await world.replay();
  expect(await world.replay()).toBe(false);
  const changes = { endpoint: 'http://elsewhere.test/' };
  await world.change(changes);
  await replayAll(world, find);
  expect(world.sent).toEqual(['e1', 'e1', 'e2']);
});

test('a webhook that is enabled again has its replay probed at once, as its lane is', async () => {
  const world = await createDelivered(database, 2);
  const { find } = await start(world);
  const change = (disabled: boolean) => world.change({ disabled });
  world.behave = () => status(404);
  await world.replay();
  expect(await find()).toMatchObject({ isFailing: true });
  // Its owner has mended the endpoint.
  await change(true);
  world.behave = () => OK;
  expect(await world.replay()).toBe(false);
  await change(false);
  expect(await world.replay()).toBe(true);
  await replayAll(world, find);
  expect(world.sent).toEqual(['e1', 'e1', 'e2']);
});

test('one that is still broken is probed once for that, and then waits by the schedule', async () => {
  const world = await createDelivered(database, 1);
  const { find } = await start(world);
  world.behave = () => status(404);
  await world.replay();
  await enableAnew(world);
  expect(await world.replay()).toBe(true);
  world.nowMs += 1_000;
  expect(await world.replay()).toBe(false);
  expect(world.sent).toEqual(['e1', 'e1']);
  expect((await find()).nextProbeAt?.getTime()).toBeGreaterThan(world.nowMs);
});

test('a failure from before the webhook was enabled again does not count for a replay’s endpoint', async () => {
  const world = await createDelivered(database, 1);
  const { find } = await start(world);
  world.behave = async () => {
    await enableAnew(world);
    return status(404);
  };
  await world.replay();
  world.behave = () => OK;
  world.nowMs += 100;
  await world.replay();
  expect(await find()).toMatchObject({ state: 'done', delivered: 1 });
});

test('an endpoint that is enabled while it fails is probed once for that, not again and again', async () => {
  const world = await createDelivered(database, 1);
  const { find } = await start(world);
  world.behave = async () => {
    if (world.sent.length === 1) await enableAnew(world);
    return status(404);
  };
  for (let turn = 0; turn < 5; turn++) {
    await world.replay();
    world.nowMs += 10;
  }
  expect(world.sent).toEqual(['e1', 'e1']);
  expect(await find()).toMatchObject({ isFailing: true });
});

describe('an operator probes', () => {
  const probe = (world: LaneWorld) => probeNow(database, world.key, BY_TEST, world.nowMs);

  test('a replay that is blocked, though its lane is healthy', async () => {
    const world = await createDelivered(database, 2);
    const { key, find } = await start(world);
    world.behave = () => status(404);
    await world.replay();
    world.behave = () => OK;
    expect(await world.replay()).toBe(false);
    const { nextProbeAt } = await find();
    world.nowMs += 1_000;
    expect(await probe(world)).toBe('due');
    expect(await world.lane()).toMatchObject({ state: 'healthy' });
    const { rows } = await sql<{ changes: unknown }>`
      select changes from audit_logs
       where object_type = 'replay' and action = 'updated' and object_id = ${`${key.webhookId}/${key.replayId}`}`.execute(
      database,
    );
    expect(rows).toEqual([
      {
        changes: [
          {
            attribute: 'next_attempt_at',
            from: nextProbeAt?.toISOString(),
            to: new Date(world.nowMs).toISOString(),
            redacted: false,
          },
        ],
      },
    ]);
    // A second request has no further effect.
    expect(await probe(world)).toBe('due');
    expect(await world.replay()).toBe(true);
    await replayAll(world, find);
    expect(world.sent).toEqual(['e1', 'e1', 'e2']);
    expect(await probe(world)).toBe('not_failing');
  });

  test('the lane and its replay together', async () => {
    const world = await createDelivered(database, 1);
    const { find } = await start(world);
    await world.log(1);
    world.behave = () => status(404);
    await world.replay();
    await world.deliverAll();
    world.sent.length = 0;
    world.nowMs += 1_000;
    expect(await probe(world)).toBe('due');
    world.behave = () => OK;
    await world.deliverAll();
    expect(await world.replay()).toBe(true);
    expect(await find()).toMatchObject({ state: 'done', delivered: 1 });
    expect(world.sent.toSorted()).toEqual(['e1', 'e2']);
  });

  test('one that is being probed, or has not failed, or is of a disabled webhook: it stays as it is', async () => {
    const world = await createDelivered(database, 1);
    const { find } = await start(world);
    expect(await probe(world)).toBe('not_failing');
    world.behave = () => status(404);
    await world.replay();
    world.nowMs += HOUR_MS + 1_000;
    let outcome: string | undefined;
    world.behave = async () => {
      outcome = await probe(world);
      return status(404);
    };
    await world.replay();
    expect(outcome).toBe('in_progress');
    const { nextProbeAt } = await find();
    const changes = { disabled: true };
    await world.change(changes);
    expect(await probe(world)).toBe('disabled');
    expect((await find()).nextProbeAt).toEqual(nextProbeAt);
  });
});

test('a retry probe that a clock days ahead put off does not hold a replay up for as long', async () => {
  const world = await createDelivered(database, 1);
  const { find } = await start(world);
  world.nowMs += 5 * 24 * HOUR_MS;
  world.behave = () => status(500);
  expect(await world.replay()).toBe(true);
  world.nowMs -= 5 * 24 * HOUR_MS;
  world.behave = () => OK;
  expect(await world.replay()).toBe(true);
  // At its rate, of which that clock knew as well.
  world.nowMs += 200;
  await world.replay();
  expect(await find()).toMatchObject({ state: 'done', delivered: 1 });
});
