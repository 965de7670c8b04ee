/**
 * Processes one commit batch, and those that wait behind it, in one transaction: claim them, load what their
 * operations touch, apply them, write what changed, log the deliveries.
 *
 * Step 9 of the walk. Before: `platform/src/queue/queue.ts` hands the commit batch over, once or more often.
 * After: the lanes it names are woken and `deliver-webhook.ts` (step 11) sends what was logged.
 *
 * Exactly once in effect: claim and effects are one transaction, so a run that was cut leaves
 * nothing and a second run finds the claim. The number of statements does not depend on the number
 * of operations.
 *
 * Together, because a transaction costs the same for one operation as for hundreds, and because transactions that
 * report to one webhook follow each other in all shards: each holds the webhook's lane until its commit
 * (`appendDeliveries`). A shard that is behind takes as many commit batches at a time as it needs to keep up. Where one
 * of them fails, the first is applied by itself.
 *
 * ```
 *          conflict: at most 10 times
 *          ┌──────┐
 *          ▼      │
 *   apply the whole ──────────────────────────────────▶ applied
 *          │ Postgres refuses a value, or a fault of ours    ▲
 *          ▼                                                 │
 *   apply in halves of halves, each in a savepoint: what     │
 *   fails alone is dead-lettered whole, an issue says so ─────┘
 * ```
 *
 * A fault (a TypeError of the apply step, say) is met twice before it is believed. It must not hold the
 * shard for ever, nor be dropped: the operation is kept, the others go on in order, and
 * `npm run parked -- retry` queues it again once the fault is mended. An operation that this version
 * does not know is no fault: it waits for the newer version, which is about to come.
 */
import type { Database, DatabaseOrTransaction } from '@sluice/database/connection/connection';
import type { LoggedLane } from '@sluice/database/delivery/deliveries';
import { claimCommitBatches } from '@sluice/database/events/commit-batches';
import { nameOf } from '@sluice/database/delivery/lanes';
import type { NumberStock } from '@sluice/database/people/numbers';
import { insertDeadLetteredOperation } from '@sluice/database/events/dead-lettered-operations';
import { waitToMerge } from '@sluice/database/people/merge-gate';
import { inSavepoint } from '@sluice/database/connection/savepoint';
import { isConflict, isRefusedData } from '@sluice/database/connection/statement-failure';
import { applyOperations } from '@sluice/domain/apply/apply-operations';
import { AppError } from '@sluice/domain/values/errors';
import { mergeStanceOf } from '@sluice/domain/state/held-identifiers';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation, RecordIssue } from '@sluice/domain/operations/operation';
import { findStateNeeds } from '@sluice/domain/state/find-state-needs';
import { unpackOperation } from '@sluice/domain/operations/packed-event';
import { toStorableText } from '@sluice/domain/values/storable-text';
import { loadState, SAFEST, type LoadOptions } from './load-state.ts';
import type { TakenIdWatch } from './taken-id-watch.ts';
import { writeChanges } from './write-changes.ts';

export interface ProcessCommitBatchDeps {
  readonly database: Database;
  /** One a process. */
  readonly numbers: NumberStock;
  /** One a process. */
  readonly takenIds: TakenIdWatch;
  /** Makes ULIDs. */
  readonly newId: () => string;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** What one commit batch came to. */
export interface CommitBatchCounts {
  /** Rows of events, activities included. */
  readonly events: number;
  readonly reports: number;
  readonly issues: number;
  /** Operations that could not be applied; each is an issue too. */
  readonly parked: number;
}

export type ProcessOutcome =
  | {
      readonly outcome: 'applied';
      /** How many commit batches, from the first on: this one and those behind it, which need not run any more. */
      readonly envelopes: number;
      /** Those of them that no earlier run had applied. */
      readonly operations: number;
      readonly lanes: LoggedLane[];
      readonly counts: CommitBatchCounts;
    }
  /** By an earlier run, which may have stopped before it woke its lanes; the reconcile loop wakes those. */
  | { readonly outcome: 'already-applied' };

interface Applied {
  readonly lanes: readonly LoggedLane[];
  readonly counts: CommitBatchCounts;
}

const FAULTS_MAX = 2;

/** A conflict means that somebody else got through, so each try has a better chance than the last. */
const TRIES_MAX = 10;

/**
 * Applies a commit batch, and as many of `behind` as go with it. May be called again, and by several at
 * once, with the same ones.
 *
 * @param behind - of the same shard, in order.
 * @throws whatever stops the database; nothing was applied then.
 */
export async function processCommitBatch(
  deps: ProcessCommitBatchDeps,
  commitBatch: CommitBatch,
  behind: readonly CommitBatch[] = [],
): Promise<ProcessOutcome> {
  let isIsolating = false;
  let faults = 0;
  let together = [commitBatch, ...behind];
  for (let tries = 1; ; tries++) {
    try {
      const looksForTakenIds = isIsolating || tries > 1 || deps.takenIds.looks(deps.now());
      return await processOnce(deps, together, { isIsolating, looksForTakenIds });
    } catch (error) {
      if (isConflict(error) && tries < TRIES_MAX) continue;
      if (together.length > 1) {
        together = [commitBatch];
        continue;
      }
      if (!isContained(error) || isIsolating) throw error;
      isIsolating = isRefusedData(error) || ++faults === FAULTS_MAX;
    }
  }
}

function processOnce(
  deps: ProcessCommitBatchDeps,
  commitBatches: readonly CommitBatch[],
  { isIsolating, looksForTakenIds }: { isIsolating: boolean; looksForTakenIds: boolean },
): Promise<ProcessOutcome> {
  return deps.database.transaction().execute(async (transaction): Promise<ProcessOutcome> => {
    const claims = commitBatches.map(({ id, operations, traceparent = null }) => ({
      envelopeId: id,
      operationCount: operations.length,
      traceparent,
    }));
    const stance = mergeStanceOf(commitBatches.flatMap(({ operations }) => operations));
    // Both parts of a split commit batch would have to agree on it, so when isolating each holds whatever it names.
    const triesToKeepMergesOff = stance === 'reads' && !isIsolating;
    const { numbers, keepsMergesOff } = await claimCommitBatches(
      transaction,
      claims,
      triesToKeepMergesOff,
    );
    const operations = commitBatches.flatMap((commitBatch, place): readonly Operation[] => {
      const envelopeNumber = numbers[place];
      if (envelopeNumber === undefined) return [];
      return commitBatch.operations.map((queued) => ({
        ...unpackOperation(queued),
        envelopeNumber,
      }));
    });
    if (operations.length === 0) return { outcome: 'already-applied' };
    if (stance === 'merges') await waitToMerge(transaction);
    const { lanes, counts } = isIsolating
      ? await applyIsolated(deps, transaction, commitBatches[0]?.id ?? '', operations)
      : await applyTogether(deps, transaction, operations, { keepsMergesOff, looksForTakenIds });
    return {
      outcome: 'applied',
      envelopes: commitBatches.length,
      operations: operations.length,
      lanes: eachOnce(lanes),
      counts,
    };
  });
}

async function applyTogether(
  deps: ProcessCommitBatchDeps,
  transaction: DatabaseOrTransaction,
  operations: readonly Operation[],
  options: LoadOptions = SAFEST,
): Promise<Applied> {
  const needs = findStateNeeds(operations);
  const state = await loadState(transaction, needs, options);
  if (state.takenEvents.length > 0) deps.takenIds.proved(deps.now());
  await deps.numbers.reserve(transaction, needs.newNumbersMax);
  const takeNumber = () => deps.numbers.take();
  const changes = applyOperations(state, operations, {
    newPersonId: takeNumber,
    newObjectNumber: takeNumber,
    newId: deps.newId,
    nowMs: deps.now(),
  });
  const lanes = await writeChanges(transaction, changes);
  const { events, reports, issues } = changes;
  return {
    lanes,
    counts: { events: events.length, reports: reports.length, issues: issues.length, parked: 0 },
  };
}

/**
 * True for a failure that one operation causes and the others can be spared: a value that no row can hold, a fault of
 * our own code.
 */
function isContained(error: unknown): error is Error {
  return (
    isRefusedData(error) ||
    error instanceof TypeError ||
    error instanceof ReferenceError ||
    error instanceof SyntaxError ||
    (error instanceof AppError && error.code === 'BUG')
  );
}

/** Keeps operations that fail from taking their neighbours along. Order is kept. */
async function applyIsolated(
  deps: ProcessCommitBatchDeps,
  transaction: DatabaseOrTransaction,
  envelopeId: string,
  operations: readonly Operation[],
): Promise<Applied> {
  try {
    return await inSavepoint(transaction, isContained, () =>
      applyTogether(deps, transaction, operations),
    );
  } catch (error) {
    if (!isContained(error)) throw error;
    const [operation] = operations;
    if (operation && operations.length === 1)
      return deadLetter(deps, transaction, envelopeId, operation, error);
  }
  const middle = Math.ceil(operations.length / 2);
  const first = await applyIsolated(deps, transaction, envelopeId, operations.slice(0, middle));
  const second = await applyIsolated(deps, transaction, envelopeId, operations.slice(middle));
  return both(first, second);
}

async function deadLetter(
  deps: ProcessCommitBatchDeps,
  transaction: DatabaseOrTransaction,
  envelopeId: string,
  operation: Operation,
  error: Error,
): Promise<Applied> {
  await insertDeadLetteredOperation(transaction, {
    environmentId: operation.environmentId,
    parkedId: deps.newId(),
    envelopeId,
    operation: JSON.stringify({ ...operation, envelopeNumber: undefined }),
    error: toStorableText(error.stack ?? error.message),
  });
  const record: RecordIssue = {
    type: 'issue.record',
    environmentId: operation.environmentId,
    receivedAtMs: operation.receivedAtMs,
    source: operation.type,
    count: 1,
    issue: {
      code: isRefusedData(error) ? 'invalid' : 'parked',
      field: null,
      message: isRefusedData(error)
        ? `The call was accepted and could not be stored: ${error.message}.`
        : 'The call was accepted and met a fault of this service; it is kept, and applied once that is mended.',
      sample: JSON.stringify(operation).slice(0, 200),
    },
  };
  const { lanes, counts } = await applyTogether(deps, transaction, [record]);
  return { lanes, counts: { ...counts, parked: 1 } };
}

function both(first: Applied, second: Applied): Applied {
  return {
    lanes: [...first.lanes, ...second.lanes],
    counts: {
      events: first.counts.events + second.counts.events,
      reports: first.counts.reports + second.counts.reports,
      issues: first.counts.issues + second.counts.issues,
      parked: first.counts.parked + second.counts.parked,
    },
  };
}

/** Each lane once, with the later of its ends. */
function eachOnce(lanes: readonly LoggedLane[]): LoggedLane[] {
  return [...new Map(lanes.map((lane) => [nameOf(lane), lane])).values()];
}
