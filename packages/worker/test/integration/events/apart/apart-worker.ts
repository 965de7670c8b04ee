/** A worker of one shard, called by hand for each commit batch. On top of `support/shards-world.ts`. */
import { NumberStock } from '@sluice/database/people/numbers';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { NOW_MS } from '@sluice/domain/testing/sample-operations';
import type { FurtherBatches } from '@sluice/platform/consumers/queue-behind';
import type { JobOutcome } from '@sluice/platform/consumers/queue-shard-job';
import { createLogger } from '@sluice/platform/process/logger';
import {
  createCommitBatchProcessor,
  type CommitBatchProcessor,
} from '../../../../src/events/commit-batch-processor.ts';
import type { ShardsWorld } from '../../support/shards-world.ts';

export interface ApartWorker {
  /** Ids of batches that it took out of the queue. */
  readonly removed: readonly string[];
  /** Places behind the batch in progress from which it read the queue. */
  readonly readFrom: readonly number[];
  readonly counts: CommitBatchProcessor['counts'];
  process(batch: CommitBatch): Promise<JobOutcome>;
  /** As from a queue that gives the batch in progress alone. */
  processAlone(batch: CommitBatch): Promise<JobOutcome>;
}

/** @param behind - batches of the queue behind the one in progress. */
export function createApartWorker(
  world: ShardsWorld,
  behind: readonly CommitBatch[] = [],
): ApartWorker {
  const processor = createCommitBatchProcessor({
    database: world.database,
    numbers: new NumberStock(),
    newId: world.newId,
    tracedProcessing: (process) => process,
    lanes: { taking: () => undefined, wake: async () => {}, monotonicNow: () => 0 },
    countOperations: () => undefined,
    now: () => NOW_MS,
    logger: createLogger('test', 'silent'),
  });
  const pending = world.newPending();
  const removed: string[] = [];
  const readFrom: number[] = [];
  const further: FurtherBatches = {
    async listFurther(count, skipped) {
      readFrom.push(skipped);
      return behind.filter(({ id }) => !removed.includes(id)).slice(skipped, skipped + count);
    },
    removeFurther: async (ids) => void removed.push(...ids),
  };
  return {
    removed,
    readFrom,
    counts: processor.counts,
    processAlone: (batch) => processor.processCommitBatch(batch, async () => [], pending),
    process: (batch) => processor.processCommitBatch(batch, async () => [], pending, further),
  };
}
