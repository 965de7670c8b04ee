/**
 * The order of operations of batches that are applied together.
 *
 * It goes batch by batch. Operations of one flush are in the order of their places in it, because one call may have put
 * its items into several batches.
 *
 * Part of step 9 of the walk, used by `process-commit-batch.ts`. Pure.
 */
import { readPlaces } from '@sluice/domain/operations/flush-places';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';

export interface FlushPart {
  readonly envelope: Pick<CommitBatch, 'id' | 'flushId' | 'places'>;
  /** All of the commit batch, or an empty list. */
  readonly operations: readonly Operation[];
}

/** @param parts - in the order in which intakes added them; parts of one flush follow each other. */
export function inFlushOrder(parts: readonly FlushPart[]): Operation[] {
  const flushes = Map.groupBy(
    parts,
    ({ envelope: commitBatch }) => commitBatch.flushId ?? commitBatch.id,
  );
  return [...flushes.values()].flatMap((flush) =>
    flush.length === 1 ? [...(flush[0]?.operations ?? [])] : byPlaces(flush),
  );
}

function byPlaces(parts: readonly FlushPart[]): Operation[] {
  return parts
    .flatMap(({ envelope: commitBatch, operations }) => {
      const places = readPlaces(commitBatch.places ?? '');
      return operations.map((operation, index) => ({
        operation,
        place: places[index] ?? Infinity,
      }));
    })
    .toSorted((one, other) => one.place - other.place)
    .map(({ operation }) => operation);
}
