/** Operations of commit batches that intake has written, in order. */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { unpackOperation } from '@sluice/domain/operations/packed-event';
import { commitBatchText } from '@sluice/platform/queue/commit-batch-writer';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';

export const operationsIn = (commitBatches: readonly ShardCommitBatch[]): Operation[] =>
  commitBatches.flatMap(({ envelope: commitBatch }) =>
    operationsOfText(commitBatchText(commitBatch)),
  );

export const operationsOfText = (commitBatch: string): Operation[] =>
  (JSON.parse(commitBatch) as CommitBatch).operations.map(unpackOperation);
