/**
 * The calls that one flush commits together. Their operations are written as they come, one commit batch a
 * shard or more.
 *
 * Written when the call comes, not when the flush goes: its objects are still in the core's caches then, and are
 * garbage at once, so the collector has nothing to copy while calls wait for the broker.
 *
 * Between `batcher.ts`, which fills and flushes it, and `batch-committer.ts`.
 */
import type { Operation } from '@sluice/domain/operations/operation';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { splitOperation } from '@sluice/domain/operations/split-operation';
import {
  CommitBatchWriter,
  type CommitBatchBuffers,
} from '@sluice/platform/queue/commit-batch-writer';
import type { ParsedOperations } from './fast-track-parser.ts';

/** `unavailable`: not confirmed; it may still have happened, so a retry must carry the same ids. */
export type CommitOutcome = 'committed' | 'unavailable';

/**
 * Who waits for a flush. An object: of a function made for each call the line has left the core's caches when the
 * answer comes, which takes 0.2 µs of a call's 20.
 */
export interface CommitCaller {
  /** Called exactly once, later. */
  committed(outcome: CommitOutcome): void;
}

/** A worker's transaction and a broker's job stay small. */
const COMMIT_BATCH_OPERATIONS_MAX = 1_000;

/** One commit batch of the flush. */
interface CommitBatchPart {
  readonly shard: number;
  readonly writer: CommitBatchWriter;
  /** The operations as they were written, halves included, where they are to be kept; else empty. */
  readonly operations: Operation[];
}

/** What one call brought for one shard. */
interface ShardOperations {
  readonly parts: Operation[];
  /** What each of them is of, where it was to be kept; else empty. */
  readonly wholes: Operation[];
}

export class CommitGroup {
  readonly callers: CommitCaller[] = [];
  /** In the order in which they were begun; a shard's own in the order of its operations. */
  readonly parts: CommitBatchPart[] = [];
  /** By shard: the part that takes the next operations. */
  readonly #open: (CommitBatchPart | undefined)[];
  readonly #newId: () => string;
  readonly #buffers: CommitBatchBuffers;
  readonly #keepsOperations: boolean;
  readonly #shardCount: number;
  /** Of the requests. */
  sizeBytes = 0;
  operationCount = 0;
  /** When intake took the oldest call, Unix milliseconds. */
  arrivedAtMs = Infinity;
  /** A call spans commit batches, which must be added together. */
  isAtomic = false;

  /** @param keepsOperations - for traces, which know an operation by its identity. */
  constructor(
    shardCount: number,
    newId: () => string,
    buffers: CommitBatchBuffers,
    keepsOperations: boolean,
  ) {
    this.#shardCount = shardCount;
    this.#newId = newId;
    this.#buffers = buffers;
    this.#keepsOperations = keepsOperations;
    this.#open = Array.from({ length: shardCount });
  }

  /** Adds one call: its operations, at least one, in the order in which they came. */
  add(
    operations: readonly Operation[],
    sizeBytes: number,
    done: (outcome: CommitOutcome) => void,
  ): void {
    const [first] = operations;
    const caller = { committed: done };
    this.#count(operations.length, first?.receivedAtMs ?? Infinity, sizeBytes, caller);
    const [only] = operations.length === 1 && first ? this.#split(first) : [];
    if (only !== undefined && only === first) {
      const part = this.#partFor(this.#shardOf(only));
      part.writer.add(JSON.stringify(only));
      if (this.#keepsOperations) part.operations.push(only);
      return;
    }
    const byShard: ShardOperations[] = [];
    for (const whole of operations) {
      for (const part of this.#split(whole)) {
        const those = (byShard[this.#shardOf(part)] ??= { parts: [], wholes: [] });
        those.parts.push(part);
        if (this.#keepsOperations) those.wholes.push(whole);
      }
    }
    // In the order of the shards; `forEach` skips shards without operations.
    let touchedCount = 0;
    byShard.forEach((those, shard) => {
      if (++touchedCount > 1) this.isAtomic = true;
      this.#addMany(shard, those);
    });
  }

  /** As `add`. They are copied: a group that keeps operations cannot take them. */
  addParsed(operations: ParsedOperations, sizeBytes: number, caller: CommitCaller): void {
    const { count, memory } = operations;
    this.#count(count, operations.receivedAtMs, sizeBytes, caller);
    for (let index = 0; index < count; index++) {
      const shard = operations.shardOf(index);
      if (shard !== operations.shardOf(0)) this.isAtomic = true;
      const { writer } = this.#partFor(shard);
      writer.addBytes(memory, operations.startOf(index), operations.endOf(index));
    }
  }

  /** The broker has all of it: the buffers are free. */
  release(): void {
    for (const { writer } of this.parts) writer.release();
  }

  #count(
    operationCount: number,
    receivedAtMs: number,
    sizeBytes: number,
    caller: CommitCaller,
  ): void {
    this.callers.push(caller);
    this.sizeBytes += sizeBytes;
    this.operationCount += operationCount;
    if (receivedAtMs < this.arrivedAtMs) this.arrivedAtMs = receivedAtMs;
  }

  #shardOf(operation: Operation): number {
    return shardOf(operation.environmentId, shardKeyOf(operation), this.#shardCount);
  }

  #split(operation: Operation): readonly Operation[] {
    return splitOperation(operation, this.#shardCount);
  }

  /** As one text: writing each by itself takes half as long again. */
  #addMany(shard: number, { parts, wholes }: ShardOperations): void {
    for (let from = 0; from < parts.length;) {
      const part = this.#partFor(shard);
      const some = parts.slice(
        from,
        from + COMMIT_BATCH_OPERATIONS_MAX - part.writer.operationCount,
      );
      part.writer.addAll(JSON.stringify(some), some.length);
      part.operations.push(...wholes.slice(from, from + some.length));
      from += some.length;
    }
  }

  #partFor(shard: number): CommitBatchPart {
    const open = this.#open[shard];
    if (open !== undefined && open.writer.operationCount < COMMIT_BATCH_OPERATIONS_MAX) return open;
    // One call may be cut between two commit batches.
    if (open !== undefined) this.isAtomic = true;
    const part = {
      shard,
      writer: new CommitBatchWriter(this.#newId(), this.#buffers),
      operations: [],
    };
    this.#open[shard] = part;
    this.parts.push(part);
    return part;
  }
}
