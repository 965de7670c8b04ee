/**
 * The calls that one flush commits together. Their operations are written as they come, one commit batch a shard or
 * more.
 *
 * Written when the call comes, not when the flush goes: its objects are still in the core's caches then, and are
 * garbage at once. So the collector copies no objects of calls that wait for the broker.
 *
 * Between `batcher.ts`, which fills and flushes it, and `batch-committer.ts`.
 */
import { writePlaces } from '@sluice/domain/operations/flush-places';
import type { Operation } from '@sluice/domain/operations/operation';
import { furtherKeysOf, isOrderFree, markOf } from '@sluice/domain/operations/operation-keys';
import { keyHashOf, shardKeyOf } from '@sluice/domain/operations/shard';
import {
  CommitBatchWriter,
  type CommitBatchBuffers,
} from '@sluice/platform/queue/commit-batch-writer';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { eventIdHashIn, type RepeatedEventIds } from './repeated-event-ids.ts';
import type { ParsedOperations } from './fast-track-parser.ts';
import type { OperationWriter } from './operation-writer.ts';

/** `unavailable`: not confirmed. It may still have happened, so a retry must carry the same ids. */
export type CommitOutcome = 'committed' | 'unavailable';

/**
 * A caller that waits for a flush. An object, because the line of a function made for each call has left the core's
 * caches when the answer comes, which takes 0.2 µs of a call's 20.
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
  /** The operations as they were written, if they must be kept; else empty. */
  readonly operations: Operation[];
  /** The place of each operation in the flush. */
  readonly places: number[];
}

/** Operations of one call for one shard. */
interface ShardOperations {
  readonly operations: Operation[];
  readonly places: number[];
  /** Hash of the key that decides the shard. */
  readonly hashes: number[];
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
  readonly #repeatedIds: RepeatedEventIds;
  readonly #shardCount: number;
  /** Of the requests. */
  sizeBytes = 0;
  readonly #sizes = new Map<number, number>();
  /** Bytes that are not in `#sizes` yet: calls of one workspace come in a row. */
  readonly #last = { environmentId: 0, sizeBytes: 0 };
  operationCount = 0;
  /** When intake took the oldest call, Unix milliseconds. */
  arrivedAtMs = Infinity;
  /** A call spans commit batches, which must be added together. */
  isAtomic = false;
  /** Its calls waited to be admitted. */
  isAdmitted = false;
  /** How many operations have a place in the flush. */
  #placeCount = 0;

  /**
   * @param keepsOperations - for traces, which know an operation by its identity.
   * @param repeatedIds - one a process.
   */
  constructor(
    shardCount: number,
    newId: () => string,
    buffers: CommitBatchBuffers,
    keepsOperations: boolean,
    repeatedIds: RepeatedEventIds,
  ) {
    this.#shardCount = shardCount;
    this.#newId = newId;
    this.#buffers = buffers;
    this.#keepsOperations = keepsOperations;
    this.#repeatedIds = repeatedIds;
    this.#open = Array.from({ length: shardCount });
  }

  /** Adds one call: its operations, at least one, in the order in which they came. */
  add(
    operations: readonly Operation[],
    sizeBytes: number,
    done: (outcome: CommitOutcome) => void,
  ): void {
    const first = operations[0] as Operation;
    this.#count(operations.length, first.receivedAtMs, sizeBytes, { committed: done });
    this.#countOf(first.environmentId, sizeBytes);
    if (operations.length === 1) {
      const hash = shardHashOf(first);
      const part = this.#partFor(hash % this.#shardCount);
      part.writer.add(JSON.stringify(first));
      addKeys(part, first, hash);
      this.#noteEventId(part, eventIdHashIn(first), hash);
      part.places.push(this.#placeCount++);
      if (this.#keepsOperations) part.operations.push(first);
      return;
    }
    const byShard: ShardOperations[] = [];
    for (const operation of operations) {
      const hash = shardHashOf(operation);
      const those = (byShard[hash % this.#shardCount] ??= {
        operations: [],
        places: [],
        hashes: [],
      });
      those.operations.push(operation);
      those.places.push(this.#placeCount++);
      those.hashes.push(hash);
    }
    // In the order of the shards; `forEach` skips shards without operations.
    let touchedCount = 0;
    byShard.forEach((those, shard) => {
      if (++touchedCount > 1) this.isAtomic = true;
      this.#addMany(shard, those);
    });
  }

  /** As `add`. They are copied: a group that keeps operations cannot take them. */
  addParsed(
    environmentId: number,
    operations: ParsedOperations,
    sizeBytes: number,
    caller: CommitCaller,
  ): void {
    const { count, memory } = operations;
    this.#count(count, operations.receivedAtMs, sizeBytes, caller);
    this.#countOf(environmentId, sizeBytes);
    let firstShard: number | undefined;
    for (let index = 0; index < count; index++) {
      const hash = operations.keyHashOf(index);
      const shard = hash % this.#shardCount;
      firstShard ??= shard;
      if (shard !== firstShard) this.isAtomic = true;
      const part = this.#partFor(shard);
      const { writer, places } = part;
      writer.addBytes(memory, operations.startOf(index), operations.endOf(index));
      writer.addKey(hash);
      const anonymousHash = operations.anonymousHashOf(index);
      // An anonymous id of the person's own hash is in the person's shard, which keeps its order.
      if (anonymousHash !== hash) {
        writer.addKey(anonymousHash);
        writer.isOrderFree = false;
      }
      this.#noteEventId(part, operations.eventIdHashOf(index), hash);
      places.push(this.#placeCount++);
    }
  }

  /** Bytes of the requests by workspace. */
  get sizes(): ReadonlyMap<number, number> {
    this.#sumLast();
    return this.#sizes;
  }

  /** Memory of its commit batches. */
  get heldSizeBytes(): number {
    return this.parts.reduce((sum, { writer }) => sum + writer.heldSizeBytes, 0);
  }

  /** As `add`, of operations that are written already, at least one. They are copied. */
  addWritten(operations: OperationWriter, sizeBytes: number, caller: CommitCaller): void {
    const { count, bytes } = operations;
    this.#count(count, operations.receivedAtMs, sizeBytes, caller);
    this.#countOf(operations.environmentId, sizeBytes);
    let firstShard: number | undefined;
    for (let index = 0; index < count; index++) {
      const shard = operations.shardHashOf(index) % this.#shardCount;
      firstShard ??= shard;
      if (shard !== firstShard) this.isAtomic = true;
      const part = this.#partFor(shard);
      part.writer.addBytes(bytes, operations.startOf(index), operations.endOf(index));
      operations.addKeysTo(index, part.writer);
      this.#noteEventId(part, operations.eventIdHashOf(index), operations.shardHashOf(index));
      part.places.push(this.#placeCount++);
      if (this.#keepsOperations) part.operations.push(operations.operations[index] as Operation);
    }
  }

  /** The commit batches for the broker. To be called once, after the last call. */
  finish(traceparents: ReadonlyMap<string, string> | undefined): ShardCommitBatch[] {
    // If a call spans parts, the worker must know which of them are of one flush.
    const flushId = this.isAtomic ? this.parts[0]?.writer.id : undefined;
    return this.parts.map(({ shard, writer, places }) => ({
      shard,
      envelope: writer.finish(
        traceparents?.get(writer.id),
        flushId,
        flushId === undefined ? undefined : writePlaces(places),
      ),
    }));
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

  #countOf(environmentId: number, sizeBytes: number): void {
    if (environmentId !== this.#last.environmentId) {
      this.#sumLast();
      this.#last.environmentId = environmentId;
    }
    this.#last.sizeBytes += sizeBytes;
  }

  #sumLast(): void {
    const { environmentId, sizeBytes } = this.#last;
    if (sizeBytes === 0) return;
    this.#sizes.set(environmentId, (this.#sizes.get(environmentId) ?? 0) + sizeBytes);
    this.#last.sizeBytes = 0;
  }

  /** As one text: writing each by itself takes half as long again. */
  #addMany(shard: number, { operations, places, hashes }: ShardOperations): void {
    for (let from = 0; from < operations.length;) {
      const part = this.#partFor(shard);
      const to = from + COMMIT_BATCH_OPERATIONS_MAX - part.writer.operationCount;
      const some = operations.slice(from, to);
      part.writer.addAll(JSON.stringify(some), some.length);
      for (let index = 0; index < some.length; index++) {
        const operation = some[index] as Operation;
        const hash = hashes[from + index] as number;
        addKeys(part, operation, hash);
        this.#noteEventId(part, eventIdHashIn(operation), hash);
      }
      part.places.push(...places.slice(from, to));
      if (this.#keepsOperations) part.operations.push(...some);
      from += some.length;
    }
  }

  /** An event whose id came before under another key waits for that one. */
  #noteEventId({ writer }: CommitBatchPart, idHash: number, keyHash: number): void {
    const first = this.#repeatedIds.note(idHash, keyHash);
    if (first === undefined) return;
    writer.addKey(first);
    writer.isOrderFree = false;
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
      places: [],
    };
    this.#open[shard] = part;
    this.parts.push(part);
    return part;
  }
}

const shardHashOf = (operation: Operation): number =>
  keyHashOf(operation.environmentId, shardKeyOf(operation));

/** @param shardHash - of the key that decides its shard. */
function addKeys({ writer }: CommitBatchPart, operation: Operation, shardHash: number): void {
  const { environmentId } = operation;
  writer.addKey(shardHash);
  const further = furtherKeysOf(operation);
  if (further !== undefined)
    for (const key of further) writer.addKey(keyHashOf(environmentId, key));
  const mark = markOf(operation);
  if (mark !== undefined) writer.addKey(mark);
  writer.isOrderFree &&= isOrderFree(operation);
}
