/**
 * Processes one commit batch, and the ones behind it (`batch-transaction.ts`).
 *
 * Exactly once in effect: claim and effects are one transaction. A run that was cut has no effect, and a second run
 * finds the claim. The number of statements does not depend on the number of operations. Several batches share a
 * transaction, because it costs the same for one operation as for hundreds. Also, transactions that report to one
 * webhook follow each other in all shards: each holds the webhook's lane until its commit (`appendDeliveries`). A shard
 * that is behind takes as many commit batches at a time as it needs to keep up. If one of them fails, the first is
 * applied by itself.
 *
 * Step 9 of the walk. Before: `platform/src/queue/queue.ts` hands the commit batch over, once or more often. After: the
 * lanes it names are woken and `deliver-webhook.ts` (step 11) sends the logged deliveries.
 */
import {
  isConflict,
  isNodeAway,
  isRefusedData,
} from '@sluice/database/connection/statement-failure';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { PendingView } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import {
  both,
  eachOnce,
  isContained,
  NOTHING,
  type Applied,
  type ProcessCommitBatchDeps,
} from './apply-in-transaction.ts';
import { applyBatches, findLogged, type ProcessOutcome } from './batch-transaction.ts';
import { nextRun, type PlacedCommitBatch, type Run } from './earlier-runs.ts';
import { EarlierFirst, expectNothingByKeys, isTakingOver, makeWay, startOf } from './make-way.ts';

export type {
  CommitBatchCounts,
  LaneHandOver,
  ProcessCommitBatchDeps,
} from './apply-in-transaction.ts';
export type { ProcessOutcome } from './batch-transaction.ts';

const FAULTS_MAX = 2;

/** A conflict means that somebody else got through, so each try has a better chance than the last. */
const TRIES_MAX = 10;

/**
 * Applies a commit batch, and as many of `behind` as go with it; before it, commit batches of other shards that must
 * come first. May be called again, and by several at once, with the same ones.
 *
 * ```
 *          conflict: at most 10 times
 *          ┌──────┐
 *          ▼      │
 *   apply the whole ──────────────────────────────────▶ applied
 *          │ Postgres refuses a value, or a fault of ours    ▲
 *          ▼                                                 │
 *   apply in halves of halves, each in a savepoint: an       │
 *   operation that fails alone is dead-lettered, with an issue
 * ```
 *
 * A fault (a TypeError of the apply step, for example) must occur twice before it counts. It must not block the shard
 * for ever, nor be dropped: the operation is kept, the others go on in order, and `npm run parked -- retry` queues it
 * again after the fault is mended. An operation that this version does not know is no fault: it waits for the newer
 * version, which is about to come.
 *
 * @param behind - of the same shard, in order.
 * @param pending - batches that wait in all shards. If absent, the order among shards is the caller's.
 * @throws any error that stops the database; its transaction is then rolled back.
 */
export async function processCommitBatch(
  deps: ProcessCommitBatchDeps,
  commitBatch: CommitBatch,
  behind: readonly CommitBatch[] = [],
  pending?: PendingView,
): Promise<ProcessOutcome> {
  let together = [commitBatch, ...(await startOf(pending, commitBatch, behind))];
  let earlier: PlacedCommitBatch[] = [];
  const done: ProcessOutcome[] = [];
  for (;;) {
    try {
      if (pending && !isTakingOver(commitBatch, earlier))
        await expectNothingByKeys(pending, commitBatch);
      const run = await nextRun(pending, earlier, together);
      const logged = await findLogged(pending, run.envelopes);
      const askedAtMs = deps.lanes?.monotonicNow() ?? 0;
      const outcome = await processRun(deps, run, pending, logged);
      pending?.removeApplied(appliedOf(run, outcome).flatMap((each) => logged.get(each) ?? []));
      if (outcome.outcome === 'applied') await deps.lanes?.wake(outcome.lanes, askedAtMs);
      if (run.isLast) return sumOf([...done, outcome], together.length);
      done.push(outcome);
      const applied = new Set(run.envelopes);
      earlier = earlier.filter((each) => !applied.has(each.envelope));
    } catch (error) {
      if (!(error instanceof EarlierFirst) || !pending) throw error;
      if (together.length > 1) {
        // Perhaps before one of those behind it alone. Were they waited for now, two shards could wait for each other.
        together = [commitBatch];
        continue;
      }
      const way = await makeWay(deps, pending, commitBatch, earlier, error.batches);
      if (way.outcome === 'waiting') return way;
      if (way.outcome === 'free') {
        earlier = way.taken;
        continue;
      }
      const first = await processCommitBatch(deps, way.commitBatch, [], pending);
      if (first.outcome === 'waiting') return first;
      done.push(first);
    }
  }
}

/** The batches of a run that are applied now: of one shard the first ones, else all. */
function appliedOf(run: Run, outcome: ProcessOutcome): readonly CommitBatch[] {
  if (!run.isOfOneShard) return run.envelopes;
  return run.envelopes.slice(0, outcome.outcome === 'applied' ? outcome.envelopes : 1);
}

async function processRun(
  deps: ProcessCommitBatchDeps,
  { envelopes: commitBatches, isOfOneShard }: Run,
  pending: PendingView | undefined,
  logged: ReadonlyMap<CommitBatch, PendingBatch>,
): Promise<ProcessOutcome> {
  let isIsolating = false;
  let faults = 0;
  let together = commitBatches;
  for (let tries = 1; ; tries++) {
    try {
      const looksForTakenIds = tries > 1 || deps.takenIds.looks(deps.now());
      const options = {
        isOfOneShard,
        isIsolating,
        looksForTakenIds,
        logged,
        looksForRemadeNames: tries > 1,
      };
      return await applyBatches(deps, together, pending, options);
    } catch (error) {
      if (error instanceof EarlierFirst) throw error;
      if (isConflict(error) && tries < TRIES_MAX) continue;
      // Each try of a node that does not answer takes long (`apart/apply-apart.ts` goes on with the others).
      if (isOfOneShard && together.length > 1 && !isNodeAway(error)) {
        together = together.slice(0, 1);
        continue;
      }
      if (!isContained(error) || isIsolating) throw error;
      isIsolating = isRefusedData(error) || ++faults === FAULTS_MAX;
    }
  }
}

/**
 * The result of several transactions.
 *
 * @param own - number of commit batches of the shard in progress that the last one held, at most.
 */
function sumOf(outcomes: readonly ProcessOutcome[], own: number): ProcessOutcome {
  const [only] = outcomes;
  if (outcomes.length === 1 && only)
    return only.outcome === 'applied'
      ? { ...only, envelopes: Math.min(only.envelopes, own) }
      : only;
  const applied = outcomes.filter((each) => each.outcome === 'applied');
  if (applied.length === 0) return { outcome: 'already-applied' };
  const { lanes, counts } = applied.reduce<Applied>(both, NOTHING);
  return {
    outcome: 'applied',
    envelopes: 1,
    operations: applied.reduce((sum, each) => sum + each.operations, 0),
    lanes: eachOnce(lanes),
    counts,
  };
}
