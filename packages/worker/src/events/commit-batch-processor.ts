/**
 * Applies and counts the commit batches that the queue brings.
 *
 * The queue is `platform/src/consumers/queue-consumers.ts`, the applying `process-commit-batch.ts` (step 9 of the
 * walk). While a node of the database is away it is `apart/apply-apart.ts`.
 */
import type { Database } from '@sluice/database/connection/connection';
import { listTenantNodes } from '@sluice/database/events/tenant-nodes';
import type { NumberStock } from '@sluice/database/people/numbers';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Logger } from '@sluice/platform/process/logger';
import type { FurtherBatches } from '@sluice/platform/consumers/queue-behind';
import type { PendingBatches } from '@sluice/platform/consumers/pending-batches';
import type { Processors } from '@sluice/platform/consumers/queue-processors';
import type { JobOutcome } from '@sluice/platform/consumers/queue-shard-job';
import {
  processCommitBatch,
  type LaneHandOver,
  type ProcessCommitBatchDeps,
  type ProcessOutcome,
} from './process-commit-batch.ts';
import { ApplyApart } from './apart/apply-apart.ts';
import { applyGroup, BatchGroups } from './group-batches.ts';
import { TakenIdWatch } from './taken-id-watch.ts';

/** A part is of one workspace, and other shards apply theirs in an order of their own: they are soon taken over. */
const PARTS_WAIT_MS_MAX = 100;

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
  const apart = new ApplyApart({
    database,
    logger,
    listNodes: (environmentIds) => listTenantNodes(database, environmentIds),
    applyParts: (first, behind, pending) =>
      tracedProcessing((part, others) =>
        processCommitBatch({ ...processing, waitMsMax: PARTS_WAIT_MS_MAX }, part, others, pending),
      )(first, behind),
  });
  const counts = { appliedCount: 0, operationCount: 0, deadLetteredCount: 0 };
  const count = (commitBatch: CommitBatch, result: ProcessOutcome): void => {
    if (result.outcome !== 'applied') return;
    if (isDebugging) logger.debug({ envelopeId: commitBatch.id, ...result.counts }, 'applied');
    counts.operationCount += result.operations;
    if (result.counts.parked === 0) return;
    counts.deadLetteredCount += result.counts.parked;
    logger.error(
      { envelopeId: commitBatch.id, parked: result.counts.parked },
      'operations could not be applied; the worker moved them to the dead-letter table, which sluice parked list shows',
    );
  };
  async function processApart(
    commitBatch: CommitBatch,
    further: FurtherBatches,
    pending: PendingBatches,
  ): Promise<JobOutcome> {
    const { isDone, completeCount, outcomes, afterMs, failure } = await apart.step(
      commitBatch,
      further,
      pending,
    );
    counts.appliedCount += completeCount;
    for (const outcome of outcomes) count(commitBatch, outcome);
    if (isDone) return { outcome: 'done' };
    const isProgress = outcomes.some(({ outcome }) => outcome === 'applied');
    const reason = 'a workspace waits for its node';
    return isProgress
      ? { outcome: 'retry', afterMs, reason, isProgress }
      : { outcome: 'retry', afterMs, reason, failure };
  }
  return {
    counts,
    async processCommitBatch(commitBatch, readBehind, pending, further) {
      if (further && apart.isOn) return processApart(commitBatch, further, pending);
      const processOne = tracedProcessing((first, behind) =>
        groups.process({ batches: [first, ...behind], pending }),
      );
      const behind = await readBehind();
      let result: ProcessOutcome;
      try {
        result = await processOne(commitBatch, behind);
      } catch (error) {
        if (!further || !apart.meets(error)) throw error;
        return processApart(commitBatch, further, pending);
      }
      if (result.outcome === 'already-applied') return { outcome: 'done' };
      if (result.outcome === 'waiting')
        return { outcome: 'retry', afterMs: 0, reason: 'earlier batches come first' };
      counts.appliedCount += result.envelopes;
      count(commitBatch, result);
      return { outcome: 'done', behind: result.envelopes - 1 };
    },
  };
}
