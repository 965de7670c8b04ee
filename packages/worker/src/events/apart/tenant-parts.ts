/**
 * Commit batches of several workspaces, divided by workspace.
 *
 * A part is a commit batch of its own, with an id of its own. It keeps the place of each operation in the flush, so it
 * leaves the same rows as in the whole batch. Pure. Used by `apply-apart.ts`.
 */
import { partIdOf, type CommitBatch } from '@sluice/domain/operations/envelope';
import { readPlaces, writePlaces } from '@sluice/domain/operations/flush-places';
import { environmentOf } from '@sluice/domain/operations/packed-event';

/** The workspaces of a batch, each once, in the order of their first operations. */
export function tenantsOf({ operations }: CommitBatch): number[] {
  return [...new Set(operations.map(environmentOf))];
}

/** The operations of one workspace. */
export function partOf(batch: CommitBatch, environmentId: number): CommitBatch {
  const indexes = batch.places === undefined ? undefined : readPlaces(batch.places);
  const places: number[] = [];
  const operations = batch.operations.filter((operation, index) => {
    const isOwn = environmentOf(operation) === environmentId;
    if (isOwn) places.push(indexes?.[index] ?? index);
    return isOwn;
  });
  return {
    ...batch,
    id: partIdOf(batch.id, environmentId),
    operations,
    places: writePlaces(places),
  };
}

/**
 * The parts to apply, by workspace, in the order of the queue. A workspace that waits has no part in it, so a later part
 * never overtakes an earlier one of the same workspace.
 *
 * @param batches - next ones of a queue, in order.
 * @param applied - ids of batches and parts.
 * @param waiting - workspaces with an earlier part that is not applied.
 */
export function planParts(
  batches: readonly CommitBatch[],
  applied: ReadonlySet<string>,
  waiting: Pick<ReadonlySet<number>, 'has'>,
): ReadonlyMap<number, readonly CommitBatch[]> {
  const plan = new Map<number, CommitBatch[]>();
  for (const batch of batches) {
    if (applied.has(batch.id)) continue;
    for (const environmentId of tenantsOf(batch)) {
      if (waiting.has(environmentId) || applied.has(partIdOf(batch.id, environmentId))) continue;
      const parts = plan.get(environmentId) ?? [];
      plan.set(environmentId, parts);
      parts.push(partOf(batch, environmentId));
    }
  }
  return plan;
}

/** True if the batch, or each of its parts, is among the applied ids. */
export function isComplete(batch: CommitBatch, applied: ReadonlySet<string>): boolean {
  return (
    applied.has(batch.id) ||
    tenantsOf(batch).every((environmentId) => applied.has(partIdOf(batch.id, environmentId)))
  );
}
