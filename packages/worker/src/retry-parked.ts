/**
 * Queues parked operations again, each as an envelope of its own under the id that it was parked
 * with, and forgets it once the broker has it. Cut at any moment and begun again, it has one effect:
 * the envelope's claim drops a second copy. What fails again is parked again, under a new id.
 *
 * They are applied after whatever the same people did meanwhile: their order is lost, and only theirs.
 *
 * Beside `process-envelope.ts`, which parks; `scripts/parked.ts` is its door.
 */
import type { Database } from '@sluice/database/connection';
import { agreeOnShardCount } from '@sluice/database/installation';
import { deleteParkedOperation, listParkedOperations } from '@sluice/database/parked-operations';
import type { Operation } from '@sluice/domain/operation';
import { shardKeyOf, shardOf } from '@sluice/domain/shard';
import type { Producer } from '@sluice/platform/queue';

const COUNT_MAX = 10_000;

/**
 * At most 10,000, the longest parked first. @returns how many were queued.
 *
 * @throws AppError CONFIG_INVALID where the installation has another number of shards: they would be queued
 * where no worker looks.
 */
export async function retryParked(
  database: Database,
  producer: Pick<Producer, 'addEnvelopes'>,
  shardCount: number,
): Promise<number> {
  await agreeOnShardCount(database, shardCount);
  const parked = await listParkedOperations(database, COUNT_MAX);
  for (const { environmentId, parkedId, operation: text } of parked) {
    const operation = JSON.parse(text) as Operation;
    const shard = shardOf(environmentId, shardKeyOf(operation), shardCount);
    await producer.addEnvelopes(
      [{ shard, envelope: { id: parkedId, operations: [operation] } }],
      false,
    );
    await deleteParkedOperation(database, environmentId, parkedId);
  }
  return parked.length;
}
