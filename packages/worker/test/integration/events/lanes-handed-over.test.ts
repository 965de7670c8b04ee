/**
 * Lanes are handed to their drains with the logging commit.
 *
 * They do not wait for a busy broker.
 */
import type { LoggedLane } from '@sluice/database/delivery/logged-lanes';
import { findLane } from '@sluice/database/delivery/lanes';
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { identify } from '@sluice/domain/testing/sample-operations';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { processCommitBatch, type LaneHandOver } from '../../../src/events/process-commit-batch.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { createShardsWorld, type ShardsWorld } from '../support/shards-world.ts';

let world: ShardsWorld;
beforeAll(async () => {
  world = await createShardsWorld('postgres');
});
afterAll(() => world.close());

test('a lane is drained from the commit on, not from when the broker has forgotten the batch', async () => {
  const environmentId = world.newEnvironment();
  await insertTestWorkspace(world.deps.database, environmentId);
  const { webhookId } = await insertTestWebhook(world.deps.database, environmentId, {
    events: ['customer_unsubscribed'],
  });
  const [commitBatch] = await world.add([
    inEnvironment(environmentId, identify('id:p'), identify('id:p', { unsubscribed: true })),
  ]);
  if (!commitBatch) throw new Error('nothing was added');
  let isAskedToForget = false;
  const pending = world.newPending({
    remove() {
      isAskedToForget = true;
      return new Promise(() => undefined);
    },
  });
  let processed: ReturnType<typeof processCommitBatch> | undefined;
  const handed = new Promise<{ lanes: readonly LoggedLane[]; isCommitted: boolean }>((resolve) => {
    const lanes: LaneHandOver = {
      taking: () => ({ leaseMs: 15_000, holderProcessId: 0, nowMs: Date.now(), countMax: 1 }),
      async wake(woken) {
        const lane = await findLane(world.deps.database, { environmentId, webhookId });
        resolve({ lanes: woken, isCommitted: lane?.lastSequence === 1 });
      },
      monotonicNow: () => performance.now(),
    };
    processed = processCommitBatch({ ...world.deps, lanes }, commitBatch, [], pending);
  });
  const { lanes, isCommitted } = await handed;
  expect({ isCommitted, isAskedToForget }).toEqual({ isCommitted: true, isAskedToForget: true });
  expect(lanes).toMatchObject([{ environmentId, webhookId, claimed: { cursor: 0 } }]);
  expect(lanes[0]?.deliveries).toHaveLength(1);
  expect(await processed).toMatchObject({ outcome: 'applied' });
});
