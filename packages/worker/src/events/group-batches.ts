/**
 * Small commit batches of several shards, applied in one transaction.
 *
 * Batches that come while a transaction is under way form the next one, as intake does with calls. There is no timer: a
 * lone batch starts at once. The reason: a transaction costs the same for one operation as for hundreds. Transactions
 * that report to one webhook follow each other, since each holds the webhook's lane until its commit
 * (`database/src/delivery/deliveries.ts`).
 *
 * The trade-off is the independence of shards, which is given back if it is needed (`process-commit-batch.ts`). A group
 * never waits: a batch that must come after another, that fails or that was applied before is applied by itself. So its
 * neighbours are unharmed. A transaction that hangs, as behind a lock, blocks the others no longer than a moment. Part
 * of step 9 of the walk, used by `commit-batch-processor.ts`.
 */
import { isNodeAway } from '@sluice/database/connection/statement-failure';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { PendingView } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import type { ProcessCommitBatchDeps } from './apply-in-transaction.ts';
import { applyBatches, findLogged, type ProcessOutcome } from './batch-transaction.ts';
import { earlierByKeys } from './earlier-batches.ts';

/** A commit batch, and those behind it in its shard. */
export interface ShardBatches {
  /** In order. */
  readonly batches: readonly [CommitBatch, ...CommitBatch[]];
  readonly pending: PendingView;
}

export interface BatchGroupsOptions {
  /** Applies several in one transaction; undefined if each must be applied by itself. */
  readonly applyTogether: (
    shards: readonly ShardBatches[],
  ) => Promise<readonly ProcessOutcome[] | undefined>;
  readonly applyAlone: (shard: ShardBatches) => Promise<ProcessOutcome>;
}

/** A larger one fills a transaction by itself. */
const SHARD_OPERATIONS_MAX = 64;
const GROUP_OPERATIONS_MAX = 256;
/**
 * At most, and a second one only for so many operations. Small transactions follow each other: of two that report to
 * one webhook the second waits for the lane anyway. Each would have half of the batches, with twice the statements for
 * the same events. Without groups, at 500 events a second to one webhook, 16 shards committed one or two events each,
 * one after another.
 */
const TRANSACTIONS_AT_A_TIME = 2;
const SECOND_OPERATIONS_MIN = 64;
/** One that takes longer waits for another transaction; the next ones do not wait for it. */
const SLOW_AFTER_MS = 100;

interface Waiting extends ShardBatches {
  readonly operationCount: number;
  readonly resolve: (outcome: ProcessOutcome | Promise<ProcessOutcome>) => void;
}

export class BatchGroups {
  readonly #options: BatchGroupsOptions;
  #waiting: Waiting[] = [];
  #transactionCount = 0;
  #isScheduled = false;

  constructor(options: BatchGroupsOptions) {
    this.#options = options;
  }

  /** As `processCommitBatch`, perhaps together with others. */
  process(shard: ShardBatches): Promise<ProcessOutcome> {
    const operationCount = shard.batches.reduce((sum, each) => sum + each.operations.length, 0);
    if (operationCount > SHARD_OPERATIONS_MAX) return this.#options.applyAlone(shard);
    return new Promise((resolve) => {
      this.#waiting.push({ ...shard, operationCount, resolve });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    if (!this.#mayBegin) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const group = this.#take();
      this.#transactionCount++;
      let isCounted = true;
      const end = (): void => {
        clearTimeout(slow);
        if (!isCounted) return;
        isCounted = false;
        this.#transactionCount--;
        this.#schedule();
      };
      const slow = setTimeout(end, SLOW_AFTER_MS);
      void this.#apply(group).finally(end);
      this.#schedule();
    });
  }

  get #mayBegin(): boolean {
    if (this.#transactionCount === 0) return true;
    if (this.#transactionCount >= TRANSACTIONS_AT_A_TIME) return false;
    return (
      this.#waiting.reduce((sum, each) => sum + each.operationCount, 0) >= SECOND_OPERATIONS_MIN
    );
  }

  #take(): Waiting[] {
    let operationCount = 0;
    const count = this.#waiting.findIndex((each) => {
      operationCount += each.operationCount;
      return operationCount > GROUP_OPERATIONS_MAX;
    });
    return this.#waiting.splice(0, count === -1 ? this.#waiting.length : Math.max(count, 1));
  }

  async #apply(group: readonly Waiting[]): Promise<void> {
    const { applyTogether, applyAlone } = this.#options;
    let away: Promise<never> | undefined;
    // After any other error each batch runs by itself, so that only its own batch meets it.
    const outcomes = await applyTogether(group).catch((error: unknown) => {
      if (isNodeAway(error)) away = Promise.reject(error);
      return undefined;
    });
    for (const [place, { resolve, ...shard }] of group.entries())
      resolve(away ?? outcomes?.[place] ?? applyAlone(shard));
  }
}

/**
 * Applies the batches of several shards in one transaction, in the order of the log.
 *
 * @returns an outcome for each; undefined if the group was left unapplied, because one of them must wait, or was
 * applied before.
 * @throws any error that stops the transaction, which is then rolled back.
 */
export async function applyGroup(
  deps: ProcessCommitBatchDeps,
  shards: readonly ShardBatches[],
): Promise<readonly ProcessOutcome[] | undefined> {
  const [first] = shards;
  if (!first) return [];
  const { pending } = first;
  const batches = shards.flatMap((shard) => shard.batches);
  const logged = await findLogged(pending, batches);
  if (logged.size < batches.length || hasEarlier(pending, logged)) return undefined;
  const ordered = batches.toSorted((one, other) => placeOf(logged, one) - placeOf(logged, other));
  const askedAtMs = deps.lanes?.monotonicNow() ?? 0;
  const outcome = await applyBatches(deps, ordered, pending, {
    isOfOneShard: false,
    isIsolating: false,
    looksForTakenIds: deps.takenIds.looks(deps.now()),
    looksForRemadeNames: false,
    claimsAll: true,
    logged,
  });
  if (outcome.outcome !== 'applied') return undefined;
  pending.removeApplied([...logged.values()]);
  await deps.lanes?.wake(outcome.lanes, askedAtMs);
  return shards.map((shard) => ({
    ...outcome,
    envelopes: shard.batches.length,
    operations: shard.batches.reduce((sum, each) => sum + each.operations.length, 0),
  }));
}

const placeOf = (logged: ReadonlyMap<CommitBatch, PendingBatch>, batch: CommitBatch): number =>
  logged.get(batch)?.place ?? Infinity;

/** True if one names a person or object that a batch names that was added earlier and is not among them. */
function hasEarlier(pending: PendingView, logged: ReadonlyMap<CommitBatch, PendingBatch>): boolean {
  const ids = new Set([...logged.values()].map(({ id }) => id));
  return [...logged].some(([{ operations }, batch]) =>
    earlierByKeys(pending, batch, operations).some(({ id }) => !ids.has(id)),
  );
}
