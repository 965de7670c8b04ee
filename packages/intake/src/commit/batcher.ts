/**
 * Group commit (step 6) with one flush in flight. Calls that arrive meanwhile are the next flush, without a timer.
 *
 * ```
 *   add ─▶ waiting: [call, call, …] ── flush ──▶ one commit batch a shard, all sent at once ──▶ done, done, …
 * ```
 * A call is committed as a whole, since a flush is one transaction of the broker
 * (`platform/src/queue/queue-commit-batches.ts`). For a Cluster see `batch-committer.ts`. Calls are answered after the
 * broker's confirmation. A flush that could be made durable nowhere is reported to its callers; it is not tried again.
 * One flush for all shards, not one a shard: a Redis with `appendfsync always` writes its file once for all that
 * reached it together. It trades a flush's latency (one broker round trip at most) for large commit batches under load;
 * a lone call starts at once. Before: `accept.ts`, `fast-path.ts`. After: `batch-committer.ts`.
 */
import type { Operation } from '@sluice/domain/operations/operation';
import { CommitBatchBuffers } from '@sluice/platform/queue/commit-batch-writer';
import type { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { RepeatedEventIds } from '../groups/repeated-event-ids.ts';
import type { Admission } from './admission.ts';
import { AdmissionLines } from './admission-lines.ts';
import type { CommittedTo } from './batch-committer.ts';
import { CommitGroup, type CommitCaller, type CommitOutcome } from '../groups/commit-group.ts';
import type { ParsedOperations } from '../groups/fast-track-parser.ts';
import type { OperationWriter } from '../groups/operation-writer.ts';

export type { CommitOutcome } from '../groups/commit-group.ts';

/** Of request bytes in one flush, unless a single call is larger. */
const FLUSH_SIZE_BYTES_MAX = 4 * 1_048_576;
/** Of a commit batch that waits in a line, at first: lines have hundreds of them, of tens of operations each. */
const LINE_BUFFER_SIZE_BYTES = 4_096;

export interface BatcherOptions {
  readonly shardCount: number;
  /**
   * A rejection means "not all confirmed". `isAtomic`: a call spans commit batches, so they are committed together.
   * `arrivedAtMs`: when intake took the oldest call of the flush that did not wait to be admitted, Unix milliseconds.
   * It is Infinity if all did. `sizes`: its request bytes, by workspace.
   */
  readonly commit: (
    commitBatches: readonly ShardCommitBatch[],
    isAtomic: boolean,
    arrivedAtMs: number,
    sizes: ReadonlyMap<number, number>,
  ) => Promise<CommittedTo>;
  /** ULID. */
  readonly newId: () => string;
  /** Request bytes held in memory. */
  readonly pending: SharedCapacity;
  /**
   * Asked if `pending` has capacity: whether the disk has capacity too, should the call go there. Both are waiting
   * bytes with the call's: of its workspace, and of all. If absent, it always has.
   */
  readonly hasDiskCapacity?: (
    environmentId: number,
    ownSizeBytes: number,
    totalSizeBytes: number,
  ) => boolean;
  /** Of workspaces that send much. If absent, every call goes with the next flush. */
  readonly admission?: CallAdmission;
  readonly onCommitFailure: (error: unknown, commitBatches: readonly ShardCommitBatch[]) => void;
  /** Called once a flush, immediately before its calls are answered. */
  readonly onCommitted?: () => void;
  /** Asked once a flush; absent without traces. */
  readonly traceFlush?: (commitBatches: readonly CommitBatchDraft[]) => TracedFlush | undefined;
}

/** The calls that this makes to `admission.ts`. */
export type CallAdmission = Pick<
  Admission,
  | 'mustWait'
  | 'sendsMuch'
  | 'mayAdmit'
  | 'mayJoin'
  | 'admitted'
  | 'isSampleDue'
  | 'sample'
  | 'groupCountMax'
>;

/** A commit batch that is about to be written. */
export interface CommitBatchDraft {
  readonly shard: number;
  readonly id: string;
  readonly operations: readonly Operation[];
}

/** A flush that holds calls that are traced. */
export interface TracedFlush {
  /** By the commit batch's id, if it goes on in a trace. */
  readonly traceparents: ReadonlyMap<string, string>;
  end(outcome: CommitOutcome): void;
}

export class Batcher {
  readonly #options: BatcherOptions;
  /** The first one is the next flush, the last one takes new calls. */
  readonly #waiting: CommitGroup[] = [];
  readonly #buffers = new CommitBatchBuffers();
  readonly #repeatedIds = new RepeatedEventIds();
  /** Calls that wait to be admitted. */
  readonly #lines: AdmissionLines;
  readonly #lineBuffers = new CommitBatchBuffers(LINE_BUFFER_SIZE_BYTES);
  #open: CommitGroup | undefined;
  #unansweredCount = 0;
  #isFlushing = false;
  #drained: (() => void)[] = [];
  /** Counters for `/metrics`. */
  flushCount = 0;
  commitBatchCount = 0;
  operationCount = 0;
  /** Of the taken ones. */
  fastPathOperationCount = 0;

  constructor(options: BatcherOptions) {
    this.#options = options;
    this.#lines = new AdmissionLines(options.pending);
  }

  get pendingSizeBytes(): number {
    return this.#options.pending.totalSize;
  }

  /**
   * Takes one call's operations, at least one, in the order in which they came. `done` is called exactly once, later.
   * The operations are not used after it returns. The bytes belong to the workspace of the first.
   *
   * @returns false when too much is waiting, or too much of its workspace; then the call is refused and `done` is never
   * called.
   */
  add(
    operations: readonly Operation[],
    sizeBytes: number,
    done: (outcome: CommitOutcome) => void,
  ): boolean {
    const environmentId = operations[0]?.environmentId ?? 0;
    const group = this.#groupWithCapacity(environmentId, sizeBytes, operations.length);
    group?.add(operations, sizeBytes, done);
    return group !== undefined;
  }

  /** As `add`. */
  addWritten(
    operations: OperationWriter,
    sizeBytes: number,
    done: (outcome: CommitOutcome) => void,
  ): boolean {
    const { environmentId, count } = operations;
    const group = this.#groupWithCapacity(environmentId, sizeBytes, count);
    group?.addWritten(operations, sizeBytes, { committed: done });
    return group !== undefined;
  }

  /** True if committed operations are known by their identity, so that `OperationWriter` must keep them. */
  get isTraced(): boolean {
    return this.#options.traceFlush !== undefined;
  }

  /** As `add`. Not to be used if flushes are traced. */
  addParsed(
    environmentId: number,
    operations: ParsedOperations,
    sizeBytes: number,
    caller: CommitCaller,
  ): boolean {
    const group = this.#groupWithCapacity(environmentId, sizeBytes, operations.count);
    if (group === undefined) return false;
    group.addParsed(environmentId, operations, sizeBytes, caller);
    this.fastPathOperationCount += operations.count;
    return true;
  }

  /** Of calls that wait to be admitted. */
  get lineOperationCount(): number {
    return this.#lines.operationCount;
  }

  /** A flush is being made durable, or begins in this turn of the event loop. */
  get isFlushing(): boolean {
    return this.#isFlushing;
  }

  /** True if the next call of a workspace will wait to be admitted, as far as is known without it. */
  mustWait(environmentId: number): boolean {
    return (
      this.#lines.has(environmentId) || this.#options.admission?.sendsMuch(environmentId) === true
    );
  }

  /** The broker can take more of the waiting calls. */
  admitMore(): void {
    if (!this.#lines.isEmpty) this.#begin();
  }

  /** Resolves when every caller has been answered. Calls do not wait to be admitted any more. */
  drain(): Promise<void> {
    if (this.#unansweredCount === 0) return Promise.resolve();
    this.admitMore();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  /**
   * The group that a call of so many bytes joins; it counts as waiting from now on. Undefined: there is no capacity.
   */
  #groupWithCapacity(
    environmentId: number,
    sizeBytes: number,
    operationCount: number,
  ): CommitGroup | undefined {
    const { pending, hasDiskCapacity, admission } = this.#options;
    // Operations that intake itself records have no size, and an order of their own.
    const mustWait =
      admission !== undefined &&
      (admission.mustWait(environmentId, sizeBytes) ||
        (sizeBytes > 0 && this.#lines.has(environmentId)));
    if (mustWait && !admission.mayJoin(this.#lines.countBefore(environmentId))) return undefined;
    if (!pending.take(environmentId, sizeBytes)) return undefined;
    if (
      hasDiskCapacity !== undefined &&
      !hasDiskCapacity(environmentId, pending.heldBy(environmentId), pending.totalSize)
    ) {
      pending.release(environmentId, sizeBytes);
      return undefined;
    }
    this.#unansweredCount++;
    this.#begin();
    return mustWait
      ? this.#lines.join(environmentId, operationCount, admission.groupCountMax, () =>
          this.#newGroup(this.#lineBuffers),
        )
      : this.#groupFor(sizeBytes);
  }

  #begin(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    // After this turn of the event loop: all sockets that are readable now share the flush.
    setImmediate(() => void this.#flushAll());
  }

  /** The last group, or a new one if it is full. */
  #groupFor(sizeBytes: number): CommitGroup {
    const open = this.#open;
    if (open !== undefined && open.sizeBytes + sizeBytes <= FLUSH_SIZE_BYTES_MAX) return open;
    const group = this.#newGroup(this.#buffers);
    this.#open = group;
    this.#waiting.push(group);
    return group;
  }

  #newGroup(buffers: CommitBatchBuffers): CommitGroup {
    const { shardCount, newId, traceFlush } = this.#options;
    return new CommitGroup(shardCount, newId, buffers, traceFlush !== undefined, this.#repeatedIds);
  }

  async #flushAll(): Promise<void> {
    for (let flush = this.#nextFlush(); flush.length > 0; flush = this.#nextFlush()) {
      const outcome = await this.#commit(flush);
      for (const { sizes } of flush)
        for (const [environmentId, sizeBytes] of sizes)
          this.#options.pending.release(environmentId, sizeBytes);
      // If calls wait, once the next flush is on its way: the broker works while the callers are answered. It takes 3 %
      // off intake's CPU (`benchmarks/history/intake.md`).
      if (this.#waiting.length > 0) setImmediate(this.#answer, flush, outcome);
      else this.#answer(flush, outcome);
    }
    this.#isFlushing = false;
  }

  /** The groups of the next flush, in their order; empty if no group may go. */
  #nextFlush(): CommitGroup[] {
    const group = this.#waiting.shift();
    if (group === this.#open) this.#open = undefined;
    const flush = group === undefined ? [] : [group];
    // Calls that a workspace sent before it had to wait come first.
    if (this.#waiting.length > 0 || this.#lines.isEmpty) return flush;
    const { admission } = this.#options;
    const isDraining = this.#drained.length > 0;
    const admitted = this.#lines.take(
      (next, taken) =>
        (taken.sizeBytes === 0 || taken.sizeBytes + next.sizeBytes <= FLUSH_SIZE_BYTES_MAX) &&
        (isDraining || admission?.mayAdmit(next.operationCount, taken.operationCount) === true),
    );
    for (const each of admitted) each.isAdmitted = true;
    return [...flush, ...admitted];
  }

  readonly #answer = (flush: readonly CommitGroup[], outcome: CommitOutcome): void => {
    this.#options.onCommitted?.();
    for (const { callers } of flush) {
      for (const caller of callers) caller.committed(outcome);
      this.#unansweredCount -= callers.length;
    }
    if (this.#unansweredCount === 0) for (const resolve of this.#drained.splice(0)) resolve();
  };

  async #commit(flush: readonly CommitGroup[]): Promise<CommitOutcome> {
    const { traceFlush, commit, onCommitFailure } = this.#options;
    const parts = flush.flatMap((group) => group.parts);
    this.flushCount++;
    this.commitBatchCount += parts.length;
    for (const { operationCount } of flush) this.operationCount += operationCount;
    const traced = traceFlush?.(
      parts.map(({ shard, writer, operations }) => ({ shard, id: writer.id, operations })),
    );
    const commitBatches = flush.flatMap((group) => group.finish(traced?.traceparents));
    let outcome: CommitOutcome = 'committed';
    try {
      const committedTo = await commit(
        commitBatches,
        flush.some(({ isAtomic }) => isAtomic),
        Math.min(...flush.map((group) => (group.isAdmitted ? Infinity : group.arrivedAtMs))),
        sizesOf(flush),
      );
      if (committedTo !== 'spill') for (const group of flush) group.release();
      // Staged batches are in no queue yet: their time would be no time of the workers.
      if (committedTo === 'broker') this.#inQueues(flush);
    } catch (error) {
      onCommitFailure(error, commitBatches);
      outcome = 'unavailable';
    }
    traced?.end(outcome);
    return outcome;
  }

  #inQueues(flush: readonly CommitGroup[]): void {
    const { admission } = this.#options;
    if (admission === undefined) return;
    const admitted = flush.filter(({ isAdmitted }) => isAdmitted);
    const isSample = admitted.length === 0;
    if (isSample && !admission.isSampleDue) return;
    const watched = isSample ? flush : admitted;
    const batches = watched.flatMap(({ parts }) =>
      parts.map(({ shard, writer: { id } }) => ({ shard, id })),
    );
    const operationCount = watched.reduce((sum, group) => sum + group.operationCount, 0);
    if (isSample) admission.sample(batches, operationCount);
    else admission.admitted(batches, operationCount, !this.#lines.isEmpty);
  }
}

/** Request bytes by workspace. */
function sizesOf(flush: readonly CommitGroup[]): ReadonlyMap<number, number> {
  const [first] = flush;
  if (flush.length === 1 && first) return first.sizes;
  const sizes = new Map<number, number>();
  for (const group of flush)
    for (const [environmentId, sizeBytes] of group.sizes)
      sizes.set(environmentId, (sizes.get(environmentId) ?? 0) + sizeBytes);
  return sizes;
}
