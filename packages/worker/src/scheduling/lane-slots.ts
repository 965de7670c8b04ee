/**
 * The slots of a process: for deliveries, and for probes by themselves, so that however many lanes fail,
 * they take none from those that do not.
 *
 * Used by `lane-drain.ts`; the sharing out is `fair-slots.ts`.
 */
import { FairSlots, type FairSlotsOptions } from './fair-slots.ts';

export interface LaneSlots {
  readonly deliveries: FairSlots;
  readonly probes: FairSlots;
}

/** Of the deliveries' slots. */
const PROBES_SHARE = 1 / 4;

/** Requests under way. */
export const inFlightCount = ({ deliveries, probes }: LaneSlots): number =>
  [deliveries, probes].reduce((sum, slots) => sum + slots.heldCount + slots.slowCount, 0);

/** @param options - those of deliveries; there is a quarter as many for probes. */
export function createLaneSlots(options: FairSlotsOptions): LaneSlots {
  return {
    deliveries: new FairSlots(options),
    probes: new FairSlots({
      ...options,
      slotsMax: Math.ceil(options.slotsMax * PROBES_SHARE),
      slowMax: Math.ceil(options.slowMax * PROBES_SHARE),
    }),
  };
}
