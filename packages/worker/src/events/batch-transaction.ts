/**
 * Commit batches in one transaction.
 *
 * It claims them, loads the rows that their operations touch, applies them, writes the changes, logs the deliveries.
 * `process-commit-batch.ts` and `group-batches.ts` decide which batches go together, and the next action after a
 * failure.
 *
 * Part of step 9 of the walk.
 */
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import {
  inPipelinedTransaction,
  inWaitingTransaction,
} from '@sluice/database/connection/pipelined-transaction';
import {
  listApplicationSubscriptions,
  listIncomingSubscriptions,
} from '@sluice/database/delivery/incoming-subscriptions';
import type { LoggedLane } from '@sluice/database/delivery/logged-lanes';
import { claimCommitBatches } from '@sluice/database/events/commit-batches';
import { waitToMerge } from '@sluice/database/people/merge-gate';
import { IncomingSubscriptions } from '@sluice/domain/delivery/incoming-subscription';
import { applicationsIn } from '@sluice/domain/reports/incoming-report';
import { findStateNeeds } from '@sluice/domain/state/find-state-needs';
import type { StateNeeds } from '@sluice/domain/state/state-needs';
import { mergeStanceOf } from '@sluice/domain/state/held-identifiers';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { readPlaces } from '@sluice/domain/operations/flush-places';
import type { Operation } from '@sluice/domain/operations/operation';
import { orderPlaceOf, type BatchPlace } from '@sluice/domain/operations/order-place';
import {
  environmentOf,
  unpackOperation,
  unpackPlaced,
  type QueuedOperation,
} from '@sluice/domain/operations/packed-event';
import type { PendingView } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import {
  applyIsolated,
  applyTogether,
  eachOnce,
  type CommitBatchCounts,
  type ProcessCommitBatchDeps,
} from './apply-in-transaction.ts';
import { findEarlierBatches, waitingVisitorsOf, type HeldBatch } from './earlier-batches.ts';
import type { Run } from './earlier-runs.ts';
import { inFlushOrder, type FlushPart } from './flush-order.ts';
import { readUnlocked, type UnlockedRows } from './state/load-state.ts';
import { EarlierFirst } from './make-way.ts';

export type ProcessOutcome =
  | {
      readonly outcome: 'applied';
      /** How many commit batches, from the first on: this one and those behind it, which need not run any more. */
      readonly envelopes: number;
      /** The ones that no earlier run had applied. */
      readonly operations: number;
      readonly lanes: LoggedLane[];
      readonly counts: CommitBatchCounts;
    }
  /** By an earlier run, which may have stopped before it woke its lanes; the reconcile loop wakes those. */
  | { readonly outcome: 'already-applied' }
  /** Batches of other shards come first and are on their way: to be called again. */
  | { readonly outcome: 'waiting' };

/** The log's entries; undefined for a batch of an older intake, which keeps no log. */
export async function findLogged(
  pending: PendingView | undefined,
  commitBatches: readonly CommitBatch[],
): Promise<ReadonlyMap<CommitBatch, PendingBatch>> {
  const logged = new Map<CommitBatch, PendingBatch>();
  for (const each of pending ? commitBatches : []) {
    const batch = await pending?.find(each.id);
    if (batch) logged.set(each, batch);
  }
  return logged;
}

export interface ApplyOptions extends Pick<Run, 'isOfOneShard'> {
  /** If one was applied before, all are left unapplied. */
  readonly claimsAll?: boolean;
  readonly isIsolating: boolean;
  readonly looksForTakenIds: boolean;
  readonly looksForRemadeNames: boolean;
  readonly logged: ReadonlyMap<CommitBatch, PendingBatch>;
}

/** Thrown out of the transaction, which is then rolled back. */
class AppliedBefore extends Error {
  constructor() {
    super('one of the batches was applied before');
  }
}

/**
 * Claims batches, applies the claimed ones, and logs the deliveries, in one transaction.
 *
 * @param commitBatches - of one shard in its order, else in the order of the log.
 * @throws EarlierFirst if others must be applied first; this transaction is then rolled back.
 */
export async function applyBatches(
  deps: ProcessCommitBatchDeps,
  commitBatches: readonly CommitBatch[],
  pending: PendingView | undefined,
  options: ApplyOptions,
): Promise<ProcessOutcome> {
  let applied: readonly Operation[] = [];
  const outcome = await applyInOne(deps, commitBatches, pending, options, (operations) => {
    applied = operations;
  });
  // After the commit: a transaction that is rolled back counts nowhere.
  if (applied.length > 0) deps.countOperations?.(applied);
  return outcome;
}

function applyInOne(
  deps: ProcessCommitBatchDeps,
  commitBatches: readonly CommitBatch[],
  pending: PendingView | undefined,
  {
    isOfOneShard,
    isIsolating,
    looksForTakenIds,
    logged,
    looksForRemadeNames,
    claimsAll = false,
  }: ApplyOptions,
  onApplied: (operations: readonly Operation[]) => void,
): Promise<ProcessOutcome> {
  const inTransaction = isIsolating ? inWaitingTransaction : inPipelinedTransaction;
  const forgotten = pending?.watchForgotten();
  return inTransaction(deps.database, async (pipelined): Promise<ProcessOutcome> => {
    const { transaction } = pipelined;
    const claims = commitBatches.map(({ id, operations, traceparent = null }) => ({
      envelopeId: id,
      operationCount: operations.length,
      traceparent,
    }));
    const found = commitBatches.map((each) => logged.get(each));
    // The log keeps calls about one person apart. For calls of an older intake, which keeps no log, the gate and locks
    // do.
    const isLogged = !pending || found.every((each) => each !== undefined);
    const stance = mergeStanceOf(commitBatches.flatMap(({ operations }) => operations));
    // Both parts of a split commit batch would have to agree on it, so when isolating each holds every identifier that
    // it names.
    const triesToKeepMergesOff = stance === 'reads' && isLogged && !isIsolating;
    const claiming = claimCommitBatches(
      transaction,
      claims,
      environmentIdsOf(commitBatches),
      triesToKeepMergesOff,
      isOfOneShard,
    );
    const reading = triesToKeepMergesOff ? readBehindClaim(transaction, commitBatches) : undefined;
    const { numbers, keepsMergesOff, reportingIncoming } = await claiming;
    if (claimsAll && numbers.includes(undefined)) throw new AppliedBefore();
    const parts = commitBatches.map((commitBatch, index): FlushPart => {
      const envelopeNumber = numbers[index];
      if (envelopeNumber === undefined) return { envelope: commitBatch, operations: [] };
      return {
        envelope: commitBatch,
        operations: placedOperations(commitBatch, envelopeNumber, found[index]?.flushPlace),
      };
    });
    const operations = isOfOneShard
      ? parts.flatMap((part) => part.operations)
      : inFlushOrder(parts);
    if (operations.length === 0) return { outcome: 'already-applied' };
    const held = heldOf(parts, found);
    // When isolating, an operation that cannot even be read through is found when it is applied.
    const needs = isIsolating ? undefined : findStateNeeds(operations);
    const reports = reportingIncoming.length > 0;
    const earlier =
      pending && (await findEarlierBatches(transaction, pending, held, needs, reports));
    if (earlier && earlier.batches.length > 0) throw new EarlierFirst(earlier.batches);
    if (stance === 'merges' && !(pending && isLogged)) await waitToMerge(transaction);
    const subscriptions = await loadSubscriptions(transaction, reportingIncoming, operations);
    const visitorsOf = waitingVisitorsOf(pending, held);
    // Without the gate, or for other operations than the rows were read for, they are read again. The same if an earlier
    // batch that can change them was pending behind the read: once another process has applied it, its people may have
    // lost the names by which the look at earlier batches finds it.
    const isReadCurrent =
      keepsMergesOff &&
      !numbers.includes(undefined) &&
      !held.some(({ batch }) => pending?.hasEarlierOrdered(batch)) &&
      !forgotten?.batches.some(({ isOrderFree }) => !isOrderFree);
    const unlocked = isReadCurrent ? await reading : undefined;
    const { lanes, counts } = isIsolating
      ? await applyIsolated(
          deps,
          transaction,
          commitBatchIdsOf(parts),
          operations,
          subscriptions,
          visitorsOf,
        )
      : await applyTogether(deps, pipelined, operations, subscriptions, {
          needs,
          options: {
            keepsMergesOff,
            looksForTakenIds,
            looksForRemadeNames,
            waitingVisitorsOf: visitorsOf,
            ...(unlocked && { unlocked }),
            ...(earlier?.released && { released: earlier.released }),
          },
          taking: deps.lanes?.taking(),
        });
    onApplied(operations);
    return {
      outcome: 'applied',
      envelopes: commitBatches.length,
      operations: operations.length,
      lanes: eachOnce(lanes),
      counts,
    };
  }).finally(() => forgotten?.end());
}

/** More operations make the double look at their needs cost more than the round trip that it spares. */
const READ_BEHIND_CLAIM_MAX = 64;

/**
 * Reads, before the claim is answered, the rows that need no lock. Postgres runs the statements after the claim's, which
 * keeps merges off.
 *
 * @returns undefined if there are many operations.
 */
function readBehindClaim(
  transaction: DatabaseOrTransaction,
  commitBatches: readonly CommitBatch[],
): Promise<UnlockedRows> | undefined {
  const queued = commitBatches.flatMap(({ operations }) => operations);
  const needs = queued.length > READ_BEHIND_CLAIM_MAX ? undefined : needsOf(queued);
  if (!needs) return undefined;
  const reading = readUnlocked(transaction, needs, true);
  // After a failed claim they have no reader.
  reading.catch(() => undefined);
  return reading;
}

/** Undefined if one of them cannot even be read through, which is found again when they are applied. */
function needsOf(queued: readonly QueuedOperation[]): StateNeeds | undefined {
  try {
    return findStateNeeds(queued.map((each) => unpackOperation(each)));
  } catch {
    return undefined;
  }
}

/** Of the workspaces that have webhooks for incoming events, and of the applications that messages name. */
async function loadSubscriptions(
  transaction: DatabaseOrTransaction,
  reportingIncoming: readonly number[],
  operations: readonly Operation[],
): Promise<IncomingSubscriptions> {
  const own = await listIncomingSubscriptions(transaction, reportingIncoming);
  const named = applicationsIn(operations);
  if (named.length === 0) return new IncomingSubscriptions(own);
  const { applications, subscriptions } = await listApplicationSubscriptions(transaction, named);
  return new IncomingSubscriptions([...own, ...subscriptions], applications);
}

/** Operations as they are applied. If no log was kept, batches stand in the order of their claims. */
function placedOperations(
  { operations, places, isReplayed }: CommitBatch,
  envelopeNumber: number,
  flushPlace: BatchPlace = { major: 0, minor: envelopeNumber },
): Operation[] {
  const indexes = places === undefined ? undefined : readPlaces(places);
  return operations.map((queued, index) => {
    const flushIndex = indexes?.[index] ?? index;
    const unpacked = unpackPlaced(queued, envelopeNumber, flushIndex);
    const operation = isReplayed ? { ...unpacked, isReplayed } : unpacked;
    // They write no attributes, and most operations are such.
    if (operation.type === 'event.track' || operation.type === 'metric.report') return operation;
    return { ...operation, place: orderPlaceOf(flushPlace, flushIndex) };
  });
}

const heldOf = (
  parts: readonly FlushPart[],
  batches: readonly (PendingBatch | undefined)[],
): HeldBatch[] =>
  parts.flatMap(({ operations }, place) => {
    const batch = batches[place];
    return batch ? [{ batch, operations }] : [];
  });

const environmentIdsOf = (commitBatches: readonly CommitBatch[]): number[] => {
  const environmentIds = new Set<number>();
  let last: number | undefined;
  for (const { operations } of commitBatches)
    for (const operation of operations) {
      const environmentId = environmentOf(operation);
      if (environmentId !== last) environmentIds.add((last = environmentId));
    }
  return [...environmentIds];
};

const commitBatchIdsOf = (parts: readonly FlushPart[]): ReadonlyMap<number | undefined, string> =>
  new Map(
    parts.flatMap(({ envelope: commitBatch, operations }) =>
      operations.slice(0, 1).map(({ envelopeNumber }) => [envelopeNumber, commitBatch.id] as const),
    ),
  );
