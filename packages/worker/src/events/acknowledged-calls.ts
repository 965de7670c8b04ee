/**
 * Waits for calls that were acknowledged before: for what takes effect without the queues, as the rows of an import.
 *
 * ```
 *   disk of an intake ──▶ staged ──▶ queues and log ──▶ applied
 *   └─ until none is left there ─┘   └─ those about the same people ─┘
 * ```
 *
 * What is on a disk or staged is waited for whomever it is about, for only the log tells that; both are empty but for
 * seconds after an outage of the broker.
 *
 * Used by `imports/import-rows.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import type { Operation } from '@sluice/domain/operations/operation';
import type { PendingBatches } from '@sluice/platform/consumers/pending-batches';
import type { FlushStage } from '@sluice/platform/queue/staged-flushes';
import { waitUntilApplied } from './applied-watch.ts';
import { keysOfOwners } from './earlier-batches.ts';

export interface AcknowledgedCalls {
  /** What waits in all shards. */
  readonly pending: PendingBatches;
  /** What is not in the queues yet. */
  readonly stage: Pick<FlushStage, 'isEmpty'>;
}

const LOOK_INTERVAL_MS = 50;

/**
 * Waits until the calls that are acknowledged now and are about the people of some operations are applied, so that the
 * operations come after them.
 *
 * @returns false if that did not happen in `waitMsMax`.
 */
export async function waitForAcknowledged(
  database: Database,
  { pending, stage }: AcknowledgedCalls,
  operations: readonly Operation[],
  waitMsMax: number,
): Promise<boolean> {
  const endsAtMs = performance.now() + waitMsMax;
  // While the broker is away, intakes keep calls on their disks.
  while (!(await stage.isEmpty().catch(() => false))) {
    if (performance.now() >= endsAtMs) return false;
    await sleep(LOOK_INTERVAL_MS);
  }
  const waiting = [...(await pending.naming(await keysOfOwners(database, operations)))];
  if (waiting.length === 0) return true;
  const leftMs = Math.max(0, endsAtMs - performance.now());
  return (await waitUntilApplied(database, pending, waiting, leftMs)) === waiting.length;
}
