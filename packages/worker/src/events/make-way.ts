/**
 * Makes way for earlier batches of other shards. They must take effect before the batch in progress.
 *
 * Only that batch ever waits, never one behind it: that one may be the first of all, and two shards would wait for each
 * other.
 *
 * Part of step 9 of the walk, called by `process-commit-batch.ts`. After: `applied-watch.ts`, `earlier-batches.ts`.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { PendingView } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import type { ProcessCommitBatchDeps } from './apply-in-transaction.ts';
import { waitUntilApplied } from './applied-watch.ts';
import { earlierByKeys } from './earlier-batches.ts';
import { readEarlier, type PlacedCommitBatch } from './earlier-runs.ts';

/** Longer than a worker needs for the batches before this one in its shard, while no queue is long. */
const WAIT_MS_MAX = 3_000;

/** Thrown out of the transaction, which is then rolled back: these batches come first. */
export class EarlierFirst extends Error {
  readonly batches: readonly PendingBatch[];

  constructor(batches: readonly PendingBatch[]) {
    super('earlier batches of other shards come first');
    this.batches = batches;
  }
}

/**
 * As many of the batches behind one, from the first on, as need no batch of other shards, by the log alone.
 *
 * A batch that was logged before one ahead of it is left out: together they would be applied in the order of the queue. Batches
 * whose order does not matter may be crossed.
 */
export async function startOf(
  pending: PendingView | undefined,
  { id }: CommitBatch,
  behind: readonly CommitBatch[],
): Promise<readonly CommitBatch[]> {
  if (!pending || behind.length === 0) return behind;
  const held = new Set([id]);
  const first = await pending.find(id);
  let highestPlace = first?.place ?? 0;
  let highestOrderedPlace = first && !first.isOrderFree ? first.place : 0;
  for (const [index, each] of behind.entries()) {
    const batch = await pending.find(each.id);
    const before = batch ? earlierByKeys(pending, batch, each.operations) : [];
    const isCrossed =
      batch && batch.place < (batch.isOrderFree ? highestOrderedPlace : highestPlace);
    if (isCrossed || before.some((other) => !held.has(other.id))) return behind.slice(0, index);
    held.add(each.id);
    if (!batch) continue;
    highestPlace = Math.max(highestPlace, batch.place);
    if (!batch.isOrderFree) highestOrderedPlace = Math.max(highestOrderedPlace, batch.place);
  }
  return behind;
}

/** True if batches of other calls are to be applied with this one. */
export const isTakingOver = (
  { flushId }: CommitBatch,
  taken: readonly PlacedCommitBatch[],
): boolean => taken.some(({ batch }) => flushId === undefined || batch.flushId !== flushId);

/** @throws EarlierFirst */
export async function expectNothingByKeys(
  pending: PendingView,
  { id, operations }: CommitBatch,
): Promise<void> {
  const batch = await pending.find(id);
  const before = batch ? earlierByKeys(pending, batch, operations) : [];
  if (before.length > 0) throw new EarlierFirst(before);
}

export type Way =
  /** `taken` is to be applied together with the batch in progress, from now on. */
  | { readonly outcome: 'free'; readonly taken: PlacedCommitBatch[] }
  /** This one is to be applied before, by itself. */
  | { readonly outcome: 'first'; readonly commitBatch: CommitBatch }
  /** Some were applied meanwhile, or one is not queued yet: all is to be looked at again. */
  | { readonly outcome: 'waiting' };

/**
 * Waits for the earlier batches, but for the other parts of the same call: those are applied together with this batch.
 *
 * A batch of the same shard is not waited for. It is behind this one in the queue, though it was logged before: on a
 * Cluster, and in Postgres, the flushes of two intakes can cross.
 *
 * @param taken - batches that are already to be applied with it.
 */
export async function makeWay(
  { database, waitMsMax = WAIT_MS_MAX, unqueuedMsMax }: ProcessCommitBatchDeps,
  pending: PendingView,
  commitBatch: CommitBatch,
  taken: readonly PlacedCommitBatch[],
  batches: readonly PendingBatch[],
): Promise<Way> {
  const { id, flushId } = commitBatch;
  const others = batches.filter((each) => flushId === undefined || each.flushId !== flushId);
  if (others.length > 0 && !isTakingOver(commitBatch, taken)) {
    const own = await pending.find(id);
    const ofShard = others.filter(({ shard }) => shard === own?.shard);
    if (ofShard.length > 0) {
      const first = ofShard.reduce((one, other) => (other.place < one.place ? other : one));
      const read = await readEarlier(database, pending, [first], unqueuedMsMax);
      if (!read) return { outcome: 'waiting' };
      return read[0]
        ? { outcome: 'first', commitBatch: read[0].envelope }
        : { outcome: 'free', taken: [...taken] };
    }
    // No worker can apply a batch that is in no queue.
    if (!others.every((each) => pending.isUnqueued(each))) {
      const appliedCount = await waitUntilApplied(database, pending, others, waitMsMax);
      if (appliedCount === others.length) return { outcome: 'free', taken: [...taken] };
      if (appliedCount > 0) return { outcome: 'waiting' };
      // No worker applies them: one has died, or hangs.
    }
  }
  const read = await readEarlier(database, pending, batches, unqueuedMsMax);
  return read ? { outcome: 'free', taken: [...taken, ...read] } : { outcome: 'waiting' };
}
