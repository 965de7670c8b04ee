/**
 * The permits of a process: for deliveries, and for probes by themselves. So any number of failing lanes takes no
 * permit from healthy ones.
 *
 * Used by `lane-drain.ts`; `fair-permits.ts` shares them out.
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

/** @param options - for deliveries; there is a quarter as many permits for probes. */
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
