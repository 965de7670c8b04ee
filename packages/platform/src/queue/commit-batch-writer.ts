/**
 * A commit batch, written as its operations come: JSON in UTF-8, as it goes to the broker.
 *
 * Bytes, not text: V8's collector copies texts that wait, and ioredis would copy such a large one twice more on its
 * way to the socket.
 *
 * Between `intake/src/groups/commit-group.ts` and `queue-commit-batches.ts`.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { BatchKeys } from './batch-keys.ts';

/** An `CommitBatch` that is JSON already. */
export interface WrittenCommitBatch extends BatchKeys {
  readonly id: string;
  /** Not to be kept: they may be overwritten once the broker has confirmed them (`CommitBatchWriter.release`). */
  readonly bytes: Buffer;
  /** As in `CommitBatch`. */
  readonly flushId?: string;
}

/** About the size of a shard's part of a flush under load. */
const SIZE_BYTES_MIN = 32_768;
const KEPT_SIZE_BYTES_MAX = 8 * 1_048_576;
/** The most that a unit of UTF-16 takes in UTF-8. */
const UNIT_SIZE_BYTES_MAX = 3;
const OPENING_BRACKET = 0x5b;
const COMMA = 0x2c;

/**
 * Buffers for commit batches, used again. Made anew for each they are memory outside of V8's heap that comes
 * and goes by 100 MB/s, for which V8 marks its whole heap several times a second: a fifth of the CPU of
 * batched events (`npm run bench -- batch`).
 */
export class CommitBatchBuffers {
  readonly #kept: Buffer[] = [];
  readonly #sizeBytesMin: number;
  #keptSizeBytes = 0;

  /** @param sizeBytesMin - of a new one. */
  constructor(sizeBytesMin = SIZE_BYTES_MIN) {
    this.#sizeBytesMin = sizeBytesMin;
  }

  take(): Buffer {
    const buffer = this.#kept.pop();
    if (buffer === undefined) return Buffer.allocUnsafeSlow(this.#sizeBytesMin);
    this.#keptSizeBytes -= buffer.length;
    return buffer;
  }

  release(buffer: Buffer): void {
    if (this.#keptSizeBytes + buffer.length > KEPT_SIZE_BYTES_MAX) return;
    this.#keptSizeBytes += buffer.length;
    this.#kept.push(buffer);
  }
}

export class CommitBatchWriter {
  readonly id: string;
  operationCount = 0;
  /** A caller that adds an operation with an order sets it to false (`BatchKeys`). */
  isOrderFree = true;
  /** As signed integers: half of the unsigned ones would each be an object on V8's heap. */
  readonly #keys = new Set<number>();
  readonly #buffers: CommitBatchBuffers;
  #bytes: Buffer;
  #sizeBytes = 0;

  /** @param id - of the commit batch. */
  constructor(id: string, buffers: CommitBatchBuffers) {
    this.id = id;
    this.#buffers = buffers;
    this.#bytes = buffers.take();
    this.#write(`{"id":${JSON.stringify(id)},"operations":`);
  }

  /** Memory that it holds, written or not. */
  get heldSizeBytes(): number {
    return this.#bytes.length;
  }

  /** An operation that is added names a key of this hash. */
  addKey(hash: number): void {
    this.#keys.add(hash | 0);
  }

  /** Adds one operation as JSON. */
  add(operation: string): void {
    this.#reserve(1 + UNIT_SIZE_BYTES_MAX * operation.length);
    this.#bytes[this.#sizeBytes++] = this.#separator();
    this.#sizeBytes += this.#bytes.write(operation, this.#sizeBytes);
    this.operationCount++;
  }

  /** Adds one operation that is UTF-8 already, copied from there. */
  addBytes(source: Buffer, start: number, end: number): void {
    this.#reserve(1 + end - start);
    this.#bytes[this.#sizeBytes++] = this.#separator();
    this.#sizeBytes += source.copy(this.#bytes, this.#sizeBytes, start, end);
    this.operationCount++;
  }

  /**
   * Adds operations, at least one, as the JSON of an array. Its brackets are overwritten: cutting or joining the text
   * would copy it.
   */
  addAll(operations: string, count: number): void {
    const openedAt = this.#sizeBytes;
    this.#write(operations);
    this.#bytes[openedAt] = this.#separator();
    this.#sizeBytes--;
    this.operationCount += count;
  }

  /** To be called once, after the last operation. The arguments as in `CommitBatch`. */
  finish(traceparent?: string, flushId?: string, places?: string): WrittenCommitBatch {
    this.#write(']');
    if (traceparent !== undefined) this.#write(`,"traceparent":${JSON.stringify(traceparent)}`);
    if (flushId !== undefined) this.#write(`,"flushId":"${flushId}","places":"${places}"`);
    this.#write('}');
    const written = {
      id: this.id,
      bytes: this.#bytes.subarray(0, this.#sizeBytes),
      keys: this.#keysAsWritten(),
      isOrderFree: this.isOrderFree,
    };
    return flushId === undefined ? written : { ...written, flushId };
  }

  /** Call it after `finish`, once the bytes are no longer read: the next commit batch gets the buffer. */
  release(): void {
    this.#buffers.release(this.#bytes);
  }

  /** By a loop: `Uint32Array.from` takes twice as long. */
  #keysAsWritten(): Uint32Array {
    const keys = new Uint32Array(this.#keys.size);
    let index = 0;
    for (const key of this.#keys) keys[index++] = key;
    return keys;
  }

  #separator(): number {
    return this.operationCount === 0 ? OPENING_BRACKET : COMMA;
  }

  #write(text: string): void {
    this.#reserve(UNIT_SIZE_BYTES_MAX * text.length);
    this.#sizeBytes += this.#bytes.write(text, this.#sizeBytes);
  }

  #reserve(sizeBytes: number): void {
    const neededBytes = this.#sizeBytes + sizeBytes;
    if (neededBytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(neededBytes, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#sizeBytes);
    this.#bytes = larger;
  }
}

/** Either kind as JSON. */
export const commitBatchText = (commitBatch: CommitBatch | WrittenCommitBatch): string =>
  'bytes' in commitBatch ? commitBatch.bytes.toString() : JSON.stringify(commitBatch);
