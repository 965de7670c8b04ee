/**
 * Group commit (step 6): one flush in flight; whatever arrives meanwhile is the next flush. No timer.
 *
 * ```
 *   add ─▶ waiting: [call, call, …] ── flush ──▶ one commit batch a shard, all sent at once ──▶ done, done, …
 * ```
 *
 * - What one call brought is committed together or not at all: a flush is one transaction of the
 *   broker (`platform/src/queue/queue-commit-batches.ts`; what a Cluster needs is in `batch-committer.ts`).
 * - Calls are answered only after the broker's confirmation.
 * - When a flush could be made durable nowhere, its callers are told so; it is not tried again.
 *
 * Trades a flush's latency (one broker round trip at most) for large commit batches under load; a lone
 * call does not wait for company. One flush for all shards rather than one a shard: a Redis with
 * `appendfsync always` writes its file once for all that reached it together.
 *
 * Before: `accept.ts`, `fast-path.ts`. After: `batch-committer.ts`.
 */
import { writePlaces } from '@sluice/domain/operations/flush-places';
import type { Operation } from '@sluice/domain/operations/operation';
import { CommitBatchBuffers } from '@sluice/platform/queue/commit-batch-writer';
import type { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import type { AnswerPace } from './answer-pace.ts';
import type { CommittedTo } from './batch-committer.ts';
import { CommitGroup, type CommitCaller, type CommitOutcome } from './commit-group.ts';
import type { ParsedOperations } from './fast-track-parser.ts';
import type { OperationWriter } from './operation-writer.ts';

export type { CommitOutcome } from './commit-group.ts';

/** Of request bytes in one flush, unless a single call is larger. */
const FLUSH_SIZE_BYTES_MAX = 4 * 1_048_576;

export interface BatcherOptions {
  readonly shardCount: number;
  /**
   * A rejection means "not all confirmed". `isAtomic`: a call spans commit batches, so all of them or none.
   * `arrivedAtMs`: when intake took the oldest call of the flush, Unix milliseconds. `sizes`: its request bytes, by
   * workspace.
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
   * Asked where `pending` has capacity: whether the disk does too, should the call go there. Both are bytes that wait,
   * the call's too: of its workspace, and of all. Absent: it always has.
   */
  readonly hasDiskCapacity?: (
    environmentId: number,
    ownSizeBytes: number,
    totalSizeBytes: number,
  ) => boolean;
  /** Puts off answers; absent: each is given at once. */
  readonly pace?: AnswerPace;
  readonly onCommitFailure: (error: unknown, commitBatches: readonly ShardCommitBatch[]) => void;
  /** Called once a flush, before its calls are answered. */
  readonly onCommitted?: () => void;
  /** Asked once a flush; absent: nothing is traced. */
  readonly traceFlush?: (commitBatches: readonly CommitBatchDraft[]) => TracedFlush | undefined;
}

/** A commit batch that is about to be written. */
export interface CommitBatchDraft {
  readonly shard: number;
  readonly id: string;
  readonly operations: readonly Operation[];
}

/** A flush that holds calls that are traced. */
export interface TracedFlush {
  /** By the commit batch's id, where it goes on in a trace. */
  readonly traceparents: ReadonlyMap<string, string>;
  end(outcome: CommitOutcome): void;
}

export class Batcher {
  readonly #options: BatcherOptions;
  /** The first one is the next flush, the last one takes what comes. */
  readonly #waiting: CommitGroup[] = [];
  readonly #buffers = new CommitBatchBuffers();
  #open: CommitGroup | undefined;
  #unansweredCount = 0;
  #isFlushing = false;
  #drained: (() => void)[] = [];
  /** Counters for `/metrics`. */
  flushCount = 0;
  commitBatchCount = 0;
  operationCount = 0;
  /** Of those that are taken. */
  fastPathOperationCount = 0;

  constructor(options: BatcherOptions) {
    this.#options = options;
  }

  get pendingSizeBytes(): number {
    return this.#options.pending.totalSize;
  }

  /**
   * Takes one call's operations, at least one, in the order in which they came. `done` is called exactly
   * once, later. Nothing of the operations is used after it returns. The bytes are those of the workspace of the first.
   *
   * @returns false when too much is waiting, or too much of its workspace; then nothing was taken and `done` is never called.
   */
  add(
    operations: readonly Operation[],
    sizeBytes: number,
    done: (outcome: CommitOutcome) => void,
  ): boolean {
    const group = this.#groupWithCapacity(operations[0]?.environmentId ?? 0, sizeBytes);
    group?.add(operations, sizeBytes, done);
    return group !== undefined;
  }

  /** As `add`. */
  addWritten(
    operations: OperationWriter,
    sizeBytes: number,
    done: (outcome: CommitOutcome) => void,
  ): boolean {
    const group = this.#groupWithCapacity(operations.environmentId, sizeBytes);
    group?.addWritten(operations, sizeBytes, { committed: done });
    return group !== undefined;
  }

  /** Whether what is committed is known by its identity, so that `OperationWriter` must keep it. */
  get isTraced(): boolean {
    return this.#options.traceFlush !== undefined;
  }

  /** As `add`. Not to be used where flushes are traced. */
  addParsed(
    environmentId: number,
    operations: ParsedOperations,
    sizeBytes: number,
    caller: CommitCaller,
  ): boolean {
    const group = this.#groupWithCapacity(environmentId, sizeBytes);
    if (group === undefined) return false;
    group.addParsed(environmentId, operations, sizeBytes, caller);
    this.fastPathOperationCount += operations.count;
    return true;
  }

  /** Resolves when every caller has been answered. */
  drain(): Promise<void> {
    if (this.#unansweredCount === 0) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  /**
   * The group that a call of so many bytes joins; it counts as waiting from now on. Undefined: there is no capacity.
   */
  #groupWithCapacity(environmentId: number, sizeBytes: number): CommitGroup | undefined {
    const { pending, hasDiskCapacity } = this.#options;
    if (!pending.take(environmentId, sizeBytes)) return undefined;
    if (
      hasDiskCapacity !== undefined &&
      !hasDiskCapacity(environmentId, pending.heldBy(environmentId), pending.totalSize)
    ) {
      pending.release(environmentId, sizeBytes);
      return undefined;
    }
    this.#unansweredCount++;
    if (!this.#isFlushing) {
      this.#isFlushing = true;
      // After this turn of the event loop: all sockets that are readable now share the flush.
      setImmediate(() => void this.#flushAll());
    }
    return this.#groupFor(sizeBytes);
  }

  /** The last group, or a new one where it is full. */
  #groupFor(sizeBytes: number): CommitGroup {
    const open = this.#open;
    if (open !== undefined && open.sizeBytes + sizeBytes <= FLUSH_SIZE_BYTES_MAX) return open;
    const { shardCount, newId, traceFlush } = this.#options;
    const group = new CommitGroup(shardCount, newId, this.#buffers, traceFlush !== undefined);
    this.#open = group;
    this.#waiting.push(group);
    return group;
  }

  async #flushAll(): Promise<void> {
    for (let group = this.#waiting.shift(); group !== undefined; group = this.#waiting.shift()) {
      if (group === this.#open) this.#open = undefined;
      const outcome = await this.#commit(group);
      for (const [environmentId, sizeBytes] of group.sizes)
        this.#options.pending.release(environmentId, sizeBytes);
      this.#options.onCommitted?.();
      this.#options.pace?.committed(group.sizes);
      this.#answer(group, outcome);
    }
    this.#isFlushing = false;
  }

  #answer({ callers, owners }: CommitGroup, outcome: CommitOutcome): void {
    const { pace } = this.#options;
    if (pace?.isSlowing !== true || outcome !== 'committed') {
      this.#answerNow(callers, outcome);
      return;
    }
    const later = Map.groupBy(callers, (_, index) => pace.delayMsOf(owners[index] as number));
    for (const [delayMs, those] of later) {
      if (delayMs === 0) this.#answerNow(those, outcome);
      else setTimeout(() => this.#answerNow(those, outcome), delayMs);
    }
  }

  #answerNow(callers: readonly CommitCaller[], outcome: CommitOutcome): void {
    for (const caller of callers) caller.committed(outcome);
    this.#unansweredCount -= callers.length;
    if (this.#unansweredCount === 0) for (const resolve of this.#drained.splice(0)) resolve();
  }

  async #commit(group: CommitGroup): Promise<CommitOutcome> {
    const { traceFlush, commit, onCommitFailure } = this.#options;
    const { parts } = group;
    this.flushCount++;
    this.commitBatchCount += parts.length;
    this.operationCount += group.operationCount;
    const traced = traceFlush?.(
      parts.map(({ shard, writer, operations }) => ({ shard, id: writer.id, operations })),
    );
    // Where a call spans parts, the worker must know which of them are of one flush.
    const flushId = group.isAtomic ? parts[0]?.writer.id : undefined;
    const commitBatches = parts.map(({ shard, writer, places }): ShardCommitBatch => ({
      shard,
      envelope: writer.finish(
        traced?.traceparents.get(writer.id),
        flushId,
        flushId === undefined ? undefined : writePlaces(places),
      ),
    }));
    let outcome: CommitOutcome = 'committed';
    try {
      const committedTo = await commit(
        commitBatches,
        group.isAtomic,
        group.arrivedAtMs,
        group.sizes,
      );
      if (committedTo === 'broker') group.release();
    } catch (error) {
      onCommitFailure(error, commitBatches);
      outcome = 'unavailable';
    }
    traced?.end(outcome);
    return outcome;
  }
}
