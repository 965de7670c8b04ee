/**
 * Claims the delivery queues of a woken range that are due.
 *
 * If queues are due and it can claim 0 of them, it has each woken by itself. The wake-up of one queue finds the reason,
 * and pauses the webhooks of a closed workspace. Otherwise the reconciliation loop would wake the range for ever.
 *
 * Between `range-drains.ts` and `lane-store.ts`.
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { LaneRange } from '@sluice/domain/wake-ups/lane-ranges';
import type { LaneDrainDeps } from '../lane/lane-drain-deps.ts';
import type { LaneStore } from '../lane/lane-store.ts';
import type { TakenRangeLane } from './range-drains.ts';

export interface ClaimRangeDeps extends Pick<
  LaneDrainDeps,
  'presence' | 'leases' | 'monotonicNow'
> {
  readonly store: Pick<LaneStore, 'claimRange' | 'listDue'>;
  /** Wakes each of the queues by itself. */
  readonly wakeEach: (lanes: readonly LaneKey[]) => Promise<void>;
}

/** @throws an error of Postgres or of the broker; the reconciliation loop finds the queues. */
export async function claimRange(
  { presence, leases, monotonicNow, store, wakeEach }: ClaimRangeDeps,
  range: LaneRange,
): Promise<readonly TakenRangeLane[]> {
  await presence.shown();
  const claimedAtMs = monotonicNow();
  const { processId: holderProcessId } = presence;
  const found = await store.claimRange({ range, leaseMs: leases.leaseMs, holderProcessId });
  if (found.length === 0) await wakeEach(await store.listDue(range));
  return found.map((claimed) => ({ claimed, claimedAtMs }));
}
