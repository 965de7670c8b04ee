/**
 * Applies and counts the commit batches that the queue brings.
 *
 * The queue is `platform/src/consumers/queue-consumers.ts`, the applying `process-commit-batch.ts` (step 9 of the
 * walk).
 */
import type { Database } from '@sluice/database/connection/connection';
import type { NumberStock } from '@sluice/database/people/numbers';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Logger } from '@sluice/platform/process/logger';
import type { Processors } from '@sluice/platform/consumers/queue-processors';
import {
  processCommitBatch,
  type LaneHandOver,
  type ProcessCommitBatchDeps,
  type ProcessOutcome,
} from './process-commit-batch.ts';
import { applyGroup, BatchGroups } from './group-batches.ts';
import { TakenIdWatch } from './taken-id-watch.ts';

export type ProcessOne = (
  commitBatch: CommitBatch,
  behind: readonly CommitBatch[],
) => Promise<ProcessOutcome>;

export interface CommitBatchProcessorDeps {
  readonly database: Database;
  readonly numbers: NumberStock;
  readonly newId: () => string;
  /** Wraps the processing in traces. */
  readonly tracedProcessing: (process: ProcessOne) => ProcessOne;
  readonly lanes: LaneHandOver;
  readonly countOperations: NonNullable<ProcessCommitBatchDeps['countOperations']>;
  readonly now: () => number;
  readonly logger: Logger;
}

export interface CommitBatchProcessor {
  /** Since the start. */
  readonly counts: {
    readonly appliedCount: number;
    readonly operationCount: number;
    readonly deadLetteredCount: number;
  };
  readonly processCommitBatch: Processors['processCommitBatch'];
}

export function createCommitBatchProcessor(deps: CommitBatchProcessorDeps): CommitBatchProcessor {
  const { database, numbers, newId, tracedProcessing, lanes, countOperations, now, logger } = deps;
  const isDebugging = logger.isLevelEnabled('debug');
  const takenIds = new TakenIdWatch();
  const processing = { database, numbers, takenIds, newId, now, lanes, countOperations };
  const groups = new BatchGroups({
    applyTogether: (shards) => applyGroup(processing, shards),
    applyAlone: ({ batches: [first, ...behind], pending }) =>
      processCommitBatch(processing, first, behind, pending),
  });
  const counts = { appliedCount: 0, operationCount: 0, deadLetteredCount: 0 };
  return {
    counts,
    async processCommitBatch(commitBatch, readBehind, pending) {
      const processOne = tracedProcessing((first, behind) =>
        groups.process({ batches: [first, ...behind], pending }),
      );
      const result = await processOne(commitBatch, await readBehind());
      if (result.outcome === 'already-applied') return { outcome: 'done' };
      if (result.outcome === 'waiting')
        return { outcome: 'retry', afterMs: 0, reason: 'earlier batches come first' };
      counts.appliedCount += result.envelopes;
      if (isDebugging) logger.debug({ envelopeId: commitBatch.id, ...result.counts }, 'applied');
      counts.operationCount += result.operations;
      if (result.counts.parked > 0) {
        counts.deadLetteredCount += result.counts.parked;
        logger.error(
          { envelopeId: commitBatch.id, parked: result.counts.parked },
          'operations could not be applied; the worker moved them to the dead-letter table, which sluice parked list shows',
        );
      }
      return { outcome: 'done', behind: result.envelopes - 1 };
    },
  };
}
