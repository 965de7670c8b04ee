/**
 * Earlier batches: their contents, and the runs that apply them.
 *
 * Part of step 9 of the walk, called by `make-way.ts` and `process-commit-batch.ts`. Before: `earlier-batches.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { listAppliedCommitBatches } from '@sluice/database/events/commit-batch-parts';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { PendingView } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';

/** Of batches that are applied because another one must come after them; more are applied in transactions of their own (`startOfRun`). */
const EARLIER_OPERATIONS_MAX = 2_000;

/** As long as an intake waits for the broker. */
const UNQUEUED_MS_MAX = 5_000;
const UNQUEUED_LOOK_INTERVAL_MS = 20;
/** Of one attempt at a job. A worker whose attempt takes too long ends, and the next one would begin the wait anew. */
const UNQUEUED_ATTEMPT_MS_MAX = 1_000;

export interface PlacedCommitBatch {
  readonly envelope: CommitBatch;
  readonly batch: PendingBatch;
}

/**
 * The content of earlier batches. A batch that is neither queued nor applied was logged by an intake that has not
 * queued it yet (on a Redis Cluster), or never will. It is waited for, and then it does not count.
 *
 * @returns undefined while a batch is waited for: to be asked again.
 */
export async function readEarlier(
  database: Database,
  pending: PendingView,
  batches: readonly PendingBatch[],
  unqueuedMsMax = UNQUEUED_MS_MAX,
): Promise<PlacedCommitBatch[] | undefined> {
  const endsAtMs = performance.now() + UNQUEUED_ATTEMPT_MS_MAX;
  const read: PlacedCommitBatch[] = [];
  let missing = batches;
  for (;;) {
    const found = await pending.readToApply(missing);
    for (const [index, batch] of missing.entries()) {
      const commitBatch = found[index];
      if (commitBatch) read.push({ envelope: commitBatch, batch });
    }
    // If some were found, the others may have been queued with them, behind the look at them.
    const isNoneFound = found.every((each) => each === undefined);
    missing = missing.filter((_, index) => found[index] === undefined);
    if (missing.length === 0) return read;
    const applied = await listAppliedCommitBatches(
      database,
      missing.map(({ id }) => id),
    );
    await pending.remove(missing.filter(({ id }) => applied.has(id)));
    missing = missing.filter(({ id }) => !applied.has(id));
    if (isNoneFound) {
      pending.leaveOut(missing.filter((each) => pending.isOverdue(each, unqueuedMsMax)));
      missing = missing.filter((each) => !pending.isOverdue(each, unqueuedMsMax));
    }
    if (missing.length === 0) return read;
    if (performance.now() >= endsAtMs) return undefined;
    await sleep(UNQUEUED_LOOK_INTERVAL_MS);
  }
}

/** The batches that one transaction applies. */
export interface Run {
  readonly envelopes: readonly CommitBatch[];
  /** All are of the shard in progress: if the first one is applied already, the others must not be applied now. */
  readonly isOfOneShard: boolean;
  /** No batch remains after it. */
  readonly isLast: boolean;
}

/** The first of the batches to apply, in the order of places, as many as one transaction should hold. */
export async function nextRun(
  pending: PendingView | undefined,
  earlier: readonly PlacedCommitBatch[],
  together: readonly CommitBatch[],
): Promise<Run> {
  const [own] = together;
  if (earlier.length === 0 || !own || !pending)
    return { envelopes: together, isOfOneShard: true, isLast: true };
  const batch = await pending.find(own.id);
  const placed = batch ? [...earlier, { envelope: own, batch }] : earlier;
  const ordered = placed
    .toSorted((one, other) => one.batch.place - other.batch.place)
    .map((each) => each.envelope);
  const commitBatches = startOfRun(ordered);
  return {
    envelopes: batch ? commitBatches : [...commitBatches, own],
    isOfOneShard: false,
    isLast: commitBatches.length === ordered.length,
  };
}

/** The first of them, up to the bound. Parts of one call are applied together or not at all, however many. */
function startOfRun(ordered: readonly CommitBatch[]): CommitBatch[] {
  let operationCount = 0;
  const started = new Set<string>();
  return ordered.filter(({ flushId, operations }, place) => {
    operationCount += operations.length;
    const isTaken =
      place === 0 ||
      operationCount <= EARLIER_OPERATIONS_MAX ||
      (flushId !== undefined && started.has(flushId));
    if (isTaken && flushId !== undefined) started.add(flushId);
    return isTaken;
  });
}
