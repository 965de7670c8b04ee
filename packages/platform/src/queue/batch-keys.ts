/**
 * Hashes of the keys that a commit batch names. They show the worker whether two batches of different shards can be about
 * the same person or object (`domain/src/operations/operation-keys.ts`).
 *
 * Four bytes a key, each key once a batch. Two keys can have one hash; then a batch only waits for another without need. One
 * byte more if the order of all operations of the batch does not matter. Most batches are such, and they need not look for
 * one another. Older versions leave out that byte, and do not read it.
 *
 * Before: `queue-commit-batches.ts`. After: `pending-index.ts`.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { isOrderFree, keysOf, markOf } from '@sluice/domain/operations/operation-keys';
import { isKnownFormat, unpackOperation } from '@sluice/domain/operations/packed-event';
import { keyHashOf } from '@sluice/domain/operations/shard';

export interface BatchKeys {
  /** Hashes of all keys that the operations name, each once, in no order. */
  readonly keys: Uint32Array;
  /** All operations are `isOrderFree`. */
  readonly isOrderFree: boolean;
}

const ORDER_FREE = 1;

/**
 * Keys of a batch. An operation of a newer version, as on a disk that an older intake drains, has no keys: it waits for a
 * worker that knows it.
 */
export function batchKeysOf({ operations }: Pick<CommitBatch, 'operations'>): BatchKeys {
  const hashes = new Set<number>();
  let isAllFree = true;
  for (const queued of operations) {
    const operation = isKnownFormat(queued) ? unpackOperation(queued) : undefined;
    isAllFree &&= operation !== undefined && isOrderFree(operation);
    if (!operation) continue;
    for (const key of keysOf(operation)) hashes.add(keyHashOf(operation.environmentId, key));
    const mark = markOf(operation);
    if (mark !== undefined) hashes.add(mark);
  }
  return { keys: Uint32Array.from(hashes), isOrderFree: isAllFree };
}

/** As the broker keeps them: the keys little-endian, then perhaps the one byte. */
export function writeBatchKeys({ keys, isOrderFree: isFree }: BatchKeys): Buffer {
  const bytes = Buffer.allocUnsafe(4 * keys.length + (isFree ? 1 : 0));
  for (let index = 0; index < keys.length; index++)
    bytes.writeUInt32LE(keys[index] as number, 4 * index);
  if (isFree) bytes[4 * keys.length] = ORDER_FREE;
  return bytes;
}

/** Reads the output of {@link writeBatchKeys}. */
export function readBatchKeys(bytes: Buffer): BatchKeys {
  const keys = new Uint32Array(Math.floor(bytes.length / 4));
  for (let index = 0; index < keys.length; index++) keys[index] = bytes.readUInt32LE(4 * index);
  return { keys, isOrderFree: bytes[4 * keys.length] === ORDER_FREE };
}
