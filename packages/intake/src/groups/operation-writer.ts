/**
 * Operations of a large batch or a line group, written when found.
 *
 * The operations of one call join a flush together. To write all of them then would take up to 0.1 s of the event loop.
 * Forty streams that keep a thousand operations each are 20 MB for the collector to copy, 10 ms each time.
 *
 * Before: `calls/accept.ts`, `stream/take-stream.ts`. After: `commit-group.ts`, which copies the bytes.
 */
import type { Operation } from '@sluice/domain/operations/operation';
import { isOrderFree, keysOf, markOf } from '@sluice/domain/operations/operation-keys';
import { keyHashOf } from '@sluice/domain/operations/shard';
import type { CommitBatchWriter } from '@sluice/platform/queue/commit-batch-writer';
import { eventIdHashIn } from './repeated-event-ids.ts';

const SIZE_BYTES_MIN = 65_536;
/** The most that a unit of UTF-16 takes in UTF-8. */
const UNIT_SIZE_BYTES_MAX = 3;

export class OperationWriter {
  /** The operations themselves, if they are kept; else empty. */
  readonly operations: Operation[] = [];
  readonly keepsOperations: boolean;
  /** The workspace of the first. */
  environmentId = 0;
  /** When the first of them came, Unix milliseconds. */
  receivedAtMs = Infinity;
  #bytes = Buffer.allocUnsafeSlow(SIZE_BYTES_MIN);
  #sizeBytes = 0;
  /** By operation: its end in the bytes, and the end of its hashes in theirs. */
  readonly #ends: number[] = [];
  readonly #hashEnds: number[] = [];
  readonly #hashes: number[] = [];
  readonly #areOrderFree: boolean[] = [];
  readonly #eventIdHashes: number[] = [];

  /** @param keepsOperations - for traces, which know an operation by its identity, and for the live tail. */
  constructor(keepsOperations: boolean) {
    this.keepsOperations = keepsOperations;
  }

  get count(): number {
    return this.#ends.length;
  }

  /** The operations as JSON in UTF-8. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  startOf(index: number): number {
    return index === 0 ? 0 : (this.#ends[index - 1] as number);
  }

  endOf(index: number): number {
    return this.#ends[index] as number;
  }

  /** The hash of the key that decides its shard. */
  shardHashOf(index: number): number {
    return this.#hashes[this.#hashStartOf(index)] as number;
  }

  /** The hash of its event id; 0 if it is another operation. */
  eventIdHashOf(index: number): number {
    return this.#eventIdHashes[index] as number;
  }

  /** Adds the hash of each key that the operation names, and whether it is free of order. */
  addKeysTo(index: number, writer: Pick<CommitBatchWriter, 'addKey' | 'isOrderFree'>): void {
    const end = this.#hashEnds[index] as number;
    for (let at = this.#hashStartOf(index); at < end; at++)
      writer.addKey(this.#hashes[at] as number);
    writer.isOrderFree &&= this.#areOrderFree[index] as boolean;
  }

  add(operation: Operation): void {
    const { environmentId, receivedAtMs } = operation;
    if (this.count === 0) this.environmentId = environmentId;
    const text = JSON.stringify(operation);
    this.#reserve(UNIT_SIZE_BYTES_MAX * text.length);
    this.#sizeBytes += this.#bytes.write(text, this.#sizeBytes);
    this.#ends.push(this.#sizeBytes);
    for (const key of keysOf(operation)) this.#hashes.push(keyHashOf(environmentId, key));
    const mark = markOf(operation);
    if (mark !== undefined) this.#hashes.push(mark);
    this.#hashEnds.push(this.#hashes.length);
    this.#areOrderFree.push(isOrderFree(operation));
    this.#eventIdHashes.push(eventIdHashIn(operation));
    if (receivedAtMs < this.receivedAtMs) this.receivedAtMs = receivedAtMs;
    if (this.keepsOperations) this.operations.push(operation);
  }

  /** Forgets all of them, and keeps its memory. */
  clear(): void {
    this.operations.length = 0;
    this.receivedAtMs = Infinity;
    this.#sizeBytes = 0;
    this.#ends.length = 0;
    this.#hashEnds.length = 0;
    this.#hashes.length = 0;
    this.#areOrderFree.length = 0;
    this.#eventIdHashes.length = 0;
  }

  #hashStartOf(index: number): number {
    return index === 0 ? 0 : (this.#hashEnds[index - 1] as number);
  }

  #reserve(sizeBytes: number): void {
    const neededBytes = this.#sizeBytes + sizeBytes;
    if (neededBytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(neededBytes, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#sizeBytes);
    this.#bytes = larger;
  }
}
