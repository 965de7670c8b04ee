/** Makes the batcher of a process: its flushes go to the committer, its answers are paced, and what neither broker nor disk accepts is logged. */
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';
import { within } from '@sluice/platform/process/within';
import type { Producer, ShardCommitBatch } from '@sluice/platform/queue/queue';
import { AnswerPace } from './answer-pace.ts';
import type { BatchCommitter } from './batch-committer.ts';
import { Batcher, type BatcherOptions } from './batcher.ts';
import type { DiskBuffer } from './disk-buffer.ts';

export interface BatcherParts extends Pick<
  BatcherOptions,
  'shardCount' | 'newId' | 'pending' | 'onCommitted' | 'traceFlush'
> {
  readonly producer: Pick<Producer, 'commitBatchCounts'>;
  /** What of all that is sent makes a workspace one whose answers may be put off. */
  readonly sharePercent: number;
  readonly lifecycle: Pick<Lifecycle, 'defer'>;
  readonly committer: BatchCommitter;
  readonly diskBuffer: DiskBuffer;
  readonly monotonicNow: () => number;
  readonly logger: Logger;
}

const COUNT_DEADLINE_MS = 1_000;
/** A full disk buffer refuses thousands of flushes a second; one log line a second is enough. */
const FAILURE_LINE_INTERVAL_MS = 1_000;

export function openBatcher(parts: BatcherParts): Batcher {
  const { producer, sharePercent, lifecycle, committer, diskBuffer, ...others } = parts;
  const { monotonicNow, logger, ...options } = others;
  let failureLineAtMs = -Infinity;
  const pace = new AnswerPace({
    sharePercent,
    countUnapplied: () => within(COUNT_DEADLINE_MS, producer.commitBatchCounts()),
    addedCount: () => batcher.commitBatchCount,
    wake: () => pacing.wake(),
    monotonicNow,
  });
  const batcher = new Batcher({
    ...options,
    pace,
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
  const pacing = repeat(
    'pace answers',
    () => pace.intervalMs,
    logger,
    () => pace.look(),
  );
  lifecycle.defer('pace of answers', () => pacing.stop());
  return batcher;
}

const idsOf = (commitBatches: readonly ShardCommitBatch[]): string[] =>
  commitBatches.map(({ envelope: commitBatch }) => commitBatch.id);
