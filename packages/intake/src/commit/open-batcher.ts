/**
 * Makes the batcher of a process.
 *
 * Its flushes go to the committer, calls of workspaces that send much are admitted, and commit batches that neither
 * broker nor disk accepts are logged.
 */
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';
import { within } from '@sluice/platform/process/within';
import type { Producer, ShardCommitBatch } from '@sluice/platform/queue/queue';
import { Admission } from './admission.ts';
import type { BatchCommitter } from './batch-committer.ts';
import { Batcher, type BatcherOptions } from './batcher.ts';
import type { DiskBuffer } from './disk-buffer.ts';

export interface BatcherParts extends Pick<
  BatcherOptions,
  'shardCount' | 'newId' | 'pending' | 'onCommitted' | 'traceFlush'
> {
  readonly producer: Pick<Producer, 'listQueued' | 'shardHeads'>;
  /** No other workspace could want any. */
  readonly isAlone: () => boolean;
  readonly lifecycle: Pick<Lifecycle, 'defer'>;
  readonly committer: BatchCommitter;
  readonly diskBuffer: DiskBuffer;
  readonly monotonicNow: () => number;
  /** The same, of the turn of the event loop. */
  readonly turnNow: () => number;
  readonly logger: Logger;
}

const ANSWER_DEADLINE_MS = 1_000;
/** A full disk buffer refuses thousands of flushes a second; one log line a second is enough. */
const FAILURE_LINE_INTERVAL_MS = 1_000;

export function openBatcher(parts: BatcherParts): Batcher {
  const { producer, isAlone, lifecycle, committer, diskBuffer, ...others } = parts;
  const { monotonicNow, turnNow, logger, ...options } = others;
  let failureLineAtMs = -Infinity;
  const admission = new Admission({
    isAlone,
    listQueued: (batches) => within(ANSWER_DEADLINE_MS, producer.listQueued(batches)),
    readHeads: async () => {
      const heads = await within(ANSWER_DEADLINE_MS, producer.shardHeads());
      // The holder of a lock is no sign: a worker that takes the same commit batch again makes no progress.
      return heads.map(({ active, nextId }) =>
        JSON.stringify([active.map(({ id }) => id), nextId]),
      );
    },
    wake: () => looking.wake(),
    onCapacity: () => batcher.admitMore(),
    monotonicNow,
    turnNow,
  });
  const batcher = new Batcher({
    ...options,
    admission,
    commit: logger.isLevelEnabled('debug')
      ? async (...flush) => {
          const committedTo = await committer.commit(...flush);
          logger.debug({ envelopeIds: idsOf(flush[0]), committedTo }, 'committed');
          return committedTo;
        }
      : (...flush) => committer.commit(...flush),
    hasDiskCapacity: (environmentId, ownSizeBytes, totalSizeBytes) =>
      diskBuffer.hasCapacityFor(environmentId, ownSizeBytes, totalSizeBytes),
    onCommitFailure: (error, commitBatches) => {
      if (monotonicNow() - failureLineAtMs < FAILURE_LINE_INTERVAL_MS) return;
      failureLineAtMs = monotonicNow();
      logger.error(
        { error, envelopeIds: idsOf(commitBatches) },
        'calls are refused; neither the broker nor the local disk buffer accepts them (docs/operations/outages.md)',
      );
    },
  });
  const looking = repeat(
    'look at admitted calls',
    () => admission.intervalMs,
    logger,
    () => admission.look(),
  );
  lifecycle.defer('admission', () => looking.stop());
  return batcher;
}

const idsOf = (commitBatches: readonly ShardCommitBatch[]): string[] =>
  commitBatches.map(({ envelope: commitBatch }) => commitBatch.id);
