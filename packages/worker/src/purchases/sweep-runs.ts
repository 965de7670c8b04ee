/**
 * Finds runs that nobody works on although their time has come: a wake-up was lost, the broker was
 * flushed, a worker died, the vendor has to be asked again. Run it every second, on any number of
 * workers. Beside `advance-run.ts`, which it feeds.
 */
import type { Database } from '@sluice/database/connection/connection';
import { listDueRuns, type RunKey } from '@sluice/database/billing/runs';

export interface SweepRunsDeps {
  readonly database: Database;
  readonly wakeRun: (run: RunKey) => Promise<void>;
  readonly now: () => number;
}

const RUNS_MAX = 1_000;

/** @returns how many were woken. */
export async function sweepRuns(deps: SweepRunsDeps): Promise<number> {
  const runs = await listDueRuns(deps.database, deps.now(), RUNS_MAX);
  await Promise.all(runs.map((run) => deps.wakeRun(run)));
  return runs.length;
}
