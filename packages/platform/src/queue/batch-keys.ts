/**
 * The hashes of the keys that a commit batch names: what tells the worker whether two batches of different shards can be
 * about the same person or object (`domain/src/operations/operation-keys.ts`).
 *
 * Four bytes a key, each key once a batch. Two keys can have one hash; then a batch waits for another for which it need
 * not wait, and nothing else happens.
 *
 * Before: `queue-commit-batches.ts`. After: `pending-index.ts`.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { keysOf, mayWriteVisitor, visitorHashOf } from '@sluice/domain/operations/operation-keys';
import { isKnownFormat, unpackOperation } from '@sluice/domain/operations/packed-event';
import { keyHashOf } from '@sluice/domain/operations/shard';

/**
 * Hashes of all keys that the operations name, each once, in no order. An operation of a newer version, as on a disk that an
 * older intake drains, has none: it waits for a worker that knows it.
 */
export function keyHashesOf({ operations }: Pick<CommitBatch, 'operations'>): Uint32Array {
  const hashes = new Set<number>();
  for (const queued of operations) {
    if (!isKnownFormat(queued)) continue;
    const operation = unpackOperation(queued);
    for (const key of keysOf(operation)) hashes.add(keyHashOf(operation.environmentId, key));
    if (mayWriteVisitor(operation)) hashes.add(visitorHashOf(operation.environmentId));
  }
  return Uint32Array.from(hashes);
}

/** As the broker keeps them: little-endian. */
export function writeHashes(hashes: Uint32Array): Buffer {
  const bytes = Buffer.allocUnsafe(4 * hashes.length);
  for (let index = 0; index < hashes.length; index++)
    bytes.writeUInt32LE(hashes[index] as number, 4 * index);
  return bytes;
}

/** Reads what {@link writeHashes} wrote. */
export function readHashes(bytes: Buffer): Uint32Array {
  const hashes = new Uint32Array(Math.floor(bytes.length / 4));
  for (let index = 0; index < hashes.length; index++) hashes[index] = bytes.readUInt32LE(4 * index);
  return hashes;
}
