/**
 * The permits of a process: for deliveries, and for probes by themselves, so that however many lanes fail,
 * they take none from those that do not.
 *
 * Used by `lane-drain.ts`; the sharing out is `fair-permits.ts`.
 */
import { FairPermits, type FairPermitsOptions } from './fair-permits.ts';

export interface LanePermits {
  readonly deliveries: FairPermits;
  readonly probes: FairPermits;
}

/** Of the deliveries' permits. */
const PROBES_SHARE = 1 / 4;

/** Requests under way. */
export const inFlightCount = ({ deliveries, probes }: LanePermits): number =>
  [deliveries, probes].reduce((sum, permits) => sum + permits.heldCount + permits.slowCount, 0);

/** @param options - those of deliveries; there is a quarter as many for probes. */
export function createLanePermits(options: FairPermitsOptions): LanePermits {
  return {
    deliveries: new FairPermits(options),
    probes: new FairPermits({
      ...options,
      permitsMax: Math.ceil(options.permitsMax * PROBES_SHARE),
      slowMax: Math.ceil(options.slowMax * PROBES_SHARE),
    }),
  };
}
