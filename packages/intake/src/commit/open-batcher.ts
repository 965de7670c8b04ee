/** Makes the batcher of a process: its flushes go to the committer, and what neither broker nor disk accepts is logged. */
import type { Logger } from '@sluice/platform/process/logger';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import type { BatchCommitter } from './batch-committer.ts';
import { Batcher, type BatcherOptions } from './batcher.ts';
import type { DiskBuffer } from './disk-buffer.ts';

export interface BatcherParts extends Pick<
  BatcherOptions,
  'shardCount' | 'newId' | 'pending' | 'onCommitted' | 'traceFlush'
> {
  readonly committer: BatchCommitter;
  readonly diskBuffer: DiskBuffer;
  readonly monotonicNow: () => number;
  readonly logger: Logger;
}

/** A full disk buffer refuses thousands of flushes a second; one log line a second is enough. */
const FAILURE_LINE_INTERVAL_MS = 1_000;

export function openBatcher(parts: BatcherParts): Batcher {
  const { committer, diskBuffer, monotonicNow, logger, ...options } = parts;
  let failureLineAtMs = -Infinity;
  return new Batcher({
    ...options,
    commit: logger.isLevelEnabled('debug')
      ? async (...flush) => {
          const committedTo = await committer.commit(...flush);
          logger.debug({ envelopeIds: idsOf(flush[0]), committedTo }, 'committed');
          return committedTo;
        }
      : (...flush) => committer.commit(...flush),
    hasDiskCapacity: (...waiting) => diskBuffer.hasCapacityFor(...waiting),
    onCommitFailure: (error, commitBatches) => {
      if (monotonicNow() - failureLineAtMs < FAILURE_LINE_INTERVAL_MS) return;
      failureLineAtMs = monotonicNow();
      logger.error(
        { error, envelopeIds: idsOf(commitBatches) },
        'calls are refused; neither the broker nor the local disk buffer accepts them',
      );
    },
  });
}

const idsOf = (commitBatches: readonly ShardCommitBatch[]): string[] =>
  commitBatches.map(({ envelope: commitBatch }) => commitBatch.id);
