/**
 * Queues dead-lettered operations again, each as a commit batch of its own under the id that it was dead-lettered
 * with, and forgets it once the broker has it. Cut at any moment and begun again, it has one effect:
 * the commit batch's claim drops a second copy. What fails again is dead-lettered again, under a new id. While the
 * broker is full it waits, as everybody does who adds work.
 *
 * They are applied after whatever the same people did meanwhile: their order is lost, and only theirs.
 *
 * Beside `process-commit-batch.ts`, which dead-letters; `scripts/parked.ts` is its door.
 */
import type { Database } from '@sluice/database/connection/connection';
import { agreeOnShardCount } from '@sluice/database/schema/installation';
import {
  deleteDeadLetteredOperation,
  listDeadLetteredOperations,
} from '@sluice/database/events/dead-lettered-operations';
import { AppError } from '@sluice/domain/values/errors';
import type { Operation } from '@sluice/domain/operations/operation';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import type { Producer, ShardCommitBatch } from '@sluice/platform/queue/queue';

const COUNT_MAX = 10_000;
const CAPACITY_RETRY_MS = 1_000;

/**
 * At most 10,000, the oldest first. @returns how many were queued.
 *
 * @throws AppError CONFIG_INVALID if the installation has another number of shards: they would be queued
 * where no worker looks.
 */
export async function retryDeadLettered(
  database: Database,
  producer: Pick<Producer, 'addCommitBatches'>,
  shardCount: number,
  pause: (durationMs: number) => Promise<unknown>,
  onProgress: (done: number, all: number) => void = () => {},
): Promise<number> {
  await agreeOnShardCount(database, shardCount);
  const deadLettered = await listDeadLetteredOperations(database, COUNT_MAX);
  for (const [done, { environmentId, parkedId, operation: text }] of deadLettered.entries()) {
    onProgress(done, deadLettered.length);
    const operation = JSON.parse(text) as Operation;
    const shard = shardOf(environmentId, shardKeyOf(operation), shardCount);
    const commitBatch = { id: parkedId, operations: [operation] };
    while (!(await isAdded(producer, { shard, envelope: commitBatch })))
      await pause(CAPACITY_RETRY_MS);
    await deleteDeadLetteredOperation(database, environmentId, parkedId);
  }
  return deadLettered.length;
}

/** False if the broker is full. */
async function isAdded(
  producer: Pick<Producer, 'addCommitBatches'>,
  commitBatch: ShardCommitBatch,
): Promise<boolean> {
  try {
    await producer.addCommitBatches([commitBatch]);
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'BROKER_FULL') return false;
    throw error;
  }
}
