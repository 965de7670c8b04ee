/**
 * Wakes lanes that have something to do and that the queue may know nothing of: the queue was
 * flushed, a wake-up was lost, a worker died with the lease.
 *
 * Run it every few seconds, on any number of workers: a lane that is woken twice runs once. Beside
 * `deliver-webhook.ts`, which it feeds.
 */
import type { Database } from '@sluice/database/connection';
import { listLanesToWake, type LaneKey } from '@sluice/database/lanes';

export interface SweepLanesDeps {
  readonly database: Database;
  readonly wakeLane: (lane: LaneKey) => Promise<void>;
  readonly now: () => number;
}

/** Woken at a time; what is over waits for the next sweep, which begins with the longest due. */
const LANES_MAX = 5_000;

/** @returns how many were woken. */
export async function sweepLanes(deps: SweepLanesDeps): Promise<number> {
  const lanes = await listLanesToWake(deps.database, deps.now(), LANES_MAX);
  await Promise.all(lanes.map((lane) => deps.wakeLane(lane)));
  return lanes.length;
}
