/**
 * Deliveries of deleted workspaces and of closed accounts are not sent.
 *
 * They are kept until it is opened again.
 */
import type { Database } from '@sluice/database/connection/connection';
import { startReplay } from '@sluice/database/replays/replay-start';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { findWebhook } from '@sluice/database/webhooks/webhooks';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { createLaneWorld, eventIds, type LaneWorld } from '../support/lane-world.ts';

let database: Database;
let world: LaneWorld;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
  world = await createLaneWorld(database);
});

const isDisabled = async () =>
  (await findWebhook(database, world.environmentId, world.webhookId))?.disabled;

const enable = () => world.change({ disabled: false });

describe.each([
  [
    'deleted',
    'update environments set deleted_at = now()',
    'update environments set deleted_at = null',
  ],
  [
    'of a closed account',
    "update accounts set status = 'closed'",
    "update accounts set status = 'active'",
  ],
])('a workspace that is %s', (_, close, open) => {
  test('receives no delivery: its webhook is disabled with an audit entry, and sends the waiting ones once open and enabled', async () => {
    await world.log(2);
    await sql.raw(close).execute(database);
    expect(await world.deliver()).toEqual({ outcome: 'paused' });
    expect(await world.deliver()).toEqual({ outcome: 'paused' });
    expect([world.sent, world.wakes, await isDisabled()]).toEqual([[], [], true]);
    const { rows } = await sql<{ actor: string; action: string; what: string }>`
      select actor_type as actor, action, object_type as what from audit_logs`.execute(database);
    expect(rows).toEqual([{ actor: 'system', action: 'updated', what: 'reporting_webhook' }]);

    await sql.raw(open).execute(database);
    await enable();
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(1, 2));
  });

  test('has no replay that goes on, until it is open again', async () => {
    await world.log(2);
    await world.deliverAll();
    world.sent.length = 0;
    const request = { criteria: {}, ratePerSecond: 1_000, createdBy: 'a test' };
    await startReplay(database, world.key, request, BY_TEST, world.nowMs);
    await sql.raw(close).execute(database);
    await world.replay();
    expect(world.sent).toEqual([]);
    await sql.raw(open).execute(database);
    await world.replay();
    expect(world.sent[0]).toBe('e1');
  });
});
