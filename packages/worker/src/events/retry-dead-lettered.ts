/**
 * Queues dead-lettered operations again, each as a commit batch of its own.
 *
 * The batch has the id under which the operation was dead-lettered, and the row goes once the broker has the batch. It
 * may stop at any moment and begin again with one effect: the commit batch's claim drops a second copy. An operation
 * that fails again is dead-lettered again, under a new id. While the broker is full it waits, like every process that
 * adds work.
 *
 * They are applied after all later operations of the same people: their order is lost, and only theirs. As late calls
 * they bring no person back who was deleted since they were received (`domain/src/apply/late-calls.ts`). This holds for
 * deletions of the last 30 days: older ones are forgotten, and dead-lettered operations wait without a limit.
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
 * At most 10,000, the oldest first.
 *
 * @returns how many were queued.
 * @throws AppError CONFIG_INVALID if the installation has another number of shards: no worker would read their queues.
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
    const commitBatch = { id: parkedId, operations: [operation], isReplayed: true } as const;
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
