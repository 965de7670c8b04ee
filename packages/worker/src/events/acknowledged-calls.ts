/**
 * Waits for earlier acknowledged calls. Changes past the queues need it, such as the rows of an import.
 *
 * ```
 *   disk of an intake ──▶ staged ──▶ queues and log ──▶ applied
 *   └─ until both are empty ─────┘   └─ calls about the same people ─┘
 * ```
 *
 * It waits for all calls on a disk or staged, about any person, because only the log has their people. Both are empty
 * except for seconds after an outage of the broker.
 *
 * Used by `imports/import-rows.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { listAppliedCommitBatches } from '@sluice/database/events/commit-batch-parts';
import { partIdOf } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import type { PendingBatches } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import type { FlushStage } from '@sluice/platform/queue/staged-flushes';
import { waitUntilApplied } from './applied-watch.ts';
import { keysOfOwners } from './earlier-batches.ts';

export interface AcknowledgedCalls {
  /** Batches that wait in all shards. */
  readonly pending: PendingBatches;
  /** Flushes that are not in the queues yet. */
  readonly stage: Pick<FlushStage, 'isEmpty'>;
}

const LOOK_INTERVAL_MS = 50;

/** How long a wait goes on. */
export interface WaitBound {
  readonly renewIntervalMs: number;
  /** Called at each interval; if it returns false the wait ends. */
  readonly renew: () => Promise<boolean>;
}

/**
 * Waits until the calls that are acknowledged now and are about the people of some operations are applied, so that the
 * operations come after them. Calls that come meanwhile are not waited for: people who are called about all day would
 * otherwise keep the operations waiting all day.
 *
 * @returns false if `renew` ended the wait.
 */
export async function waitForAcknowledged(
  database: Database,
  { pending, stage }: AcknowledgedCalls,
  operations: readonly Operation[],
  { renewIntervalMs, renew }: WaitBound,
): Promise<boolean> {
  let renewAtMs = performance.now() + renewIntervalMs;
  const mayGoOn = async (): Promise<boolean> => {
    if (performance.now() < renewAtMs) return true;
    renewAtMs = performance.now() + renewIntervalMs;
    return renew();
  };
  // While the broker is away, intakes keep calls on their disks.
  while (!(await stage.isEmpty().catch(() => false))) {
    if (!(await mayGoOn())) return false;
    await sleep(LOOK_INTERVAL_MS);
  }
  const lastPlace = await pending.lastPlace();
  const partly = new Set<string>();
  for (;;) {
    const found = await findAcknowledged(database, pending, operations, lastPlace, partly);
    let { waiting } = found;
    // Looked up again after each wait: an applied call may have given one of the people another identifier, by which a call
    // behind it names them.
    if (waiting.length === 0 && !found.isOld) return true;
    if (waiting.length === 0 && !(await mayGoOn())) return false;
    while (waiting.length > 0) {
      const leftMs = Math.max(0, renewAtMs - performance.now());
      await waitUntilApplied(database, pending, waiting, leftMs);
      waiting = await leftOf(database, pending, waiting, operations);
      if (waiting.length > 0 && !(await mayGoOn())) return false;
    }
  }
}

/**
 * Finds the batches up to a place that name the people of the operations, by the names that the people have now.
 *
 * @param partly - gets the ids of batches that are known to be applied for the workspaces of the operations: another
 *   workspace may wait in them.
 * @returns the batches that may not be applied yet. `isOld`: one of them was applied during the look-up, so the people may
 * have other names by now.
 */
async function findAcknowledged(
  database: Database,
  pending: PendingBatches,
  operations: readonly Operation[],
  lastPlace: number,
  partly: Set<string>,
): Promise<{ readonly waiting: readonly PendingBatch[]; readonly isOld: boolean }> {
  const forgotten = pending.watchForgotten();
  try {
    const keys = await keysOfOwners(database, operations);
    const named = [...pending.naming(keys, lastPlace)];
    const waiting = await leftOf(database, pending, named, operations);
    const newlyApplied = named.filter((batch) => !waiting.includes(batch) && !partly.has(batch.id));
    for (const { id } of newlyApplied) partly.add(id);
    const isForgotten = forgotten.batches.some(
      (batch) => batch.place <= lastPlace && batch.keys.some((key) => keys.has(key | 0)),
    );
    return { waiting, isOld: isForgotten || newlyApplied.length > 0 };
  } finally {
    forgotten.end();
  }
}

/** Without the batches whose parts of the operations' workspaces are applied (`apart/apply-apart.ts`). */
async function leftOf(
  database: Database,
  pending: PendingBatches,
  batches: readonly PendingBatch[],
  operations: readonly Operation[],
): Promise<readonly PendingBatch[]> {
  const waiting = batches.filter((batch) => pending.isPending(batch));
  if (waiting.length === 0) return [];
  const environmentIds = [...new Set(operations.map(({ environmentId }) => environmentId))];
  const partIds = waiting.flatMap(({ id }) => environmentIds.map((each) => partIdOf(id, each)));
  const applied = await listAppliedCommitBatches(database, partIds);
  return waiting.filter(
    ({ id }) => !environmentIds.every((environmentId) => applied.has(partIdOf(id, environmentId))),
  );
}
