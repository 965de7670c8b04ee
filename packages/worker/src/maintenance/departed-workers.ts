/**
 * Takes over the lanes and jobs of a killed worker process.
 *
 * It ends the leases of its lanes and puts its jobs back to the heads of their queues. Without it they wait for the
 * ends of leases and locks: 16.6 s at 1,500 events a second, and 4 s with it.
 *
 * Any worker does it, also the one that is started in the place of the dead one. Each step may be done twice: a lane or
 * job that was taken over meanwhile has another fencing number or another lock. The row of the dead process goes last,
 * so that another worker goes on if this one is killed too.
 *
 * Beside `database/src/maintenance/worker-processes.ts`, which finds the dead processes.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  forgetWorkers,
  listDepartedWorkers,
  releaseLanesOf,
} from '@sluice/database/maintenance/worker-processes';
import type { Logger } from '@sluice/platform/process/logger';
import type { ReconcileLoop } from '../process/reconcile-loops.ts';

export interface DepartedWorkersDeps {
  readonly database: Database;
  /** Puts the jobs back that those workers of the broker have locked; resolves with their number. */
  readonly putBackJobsOf: (brokerWorkerIds: readonly string[]) => Promise<number>;
  readonly monotonicNow: () => number;
  readonly logger: Logger;
}

/** A living process opens a new session within milliseconds, and tries again after 250 ms (`process/worker-presence.ts`). */
const DEAD_AFTER_MS = 450;

export interface DepartedWorkers {
  /**
   * Only remembers who seems to be gone. A process that starts in the place of a killed one does it first of all, so that the
   * time between two looks passes while it starts: some 0.3 of 1.5 s.
   */
  look(): Promise<void>;
  readonly reconcileLoop: ReconcileLoop;
}

/** The two looks of one process, which remembers whom it found. */
export function createDepartedWorkers(deps: DepartedWorkersDeps): DepartedWorkers {
  const { database, putBackJobsOf, monotonicNow, logger } = deps;
  let foundAtMs = new Map<number, number>();
  const findDead = async () => {
    const departed = await listDepartedWorkers(database);
    const nowMs = monotonicNow();
    const foundBefore = foundAtMs;
    foundAtMs = new Map(
      departed.map(({ processId }) => [processId, foundBefore.get(processId) ?? nowMs]),
    );
    return departed.filter(
      ({ processId }) => nowMs - (foundAtMs.get(processId) as number) >= DEAD_AFTER_MS,
    );
  };
  const run = async (): Promise<void> => {
    const dead = await findDead();
    if (dead.length === 0) return;
    const processIds = dead.map(({ processId }) => processId);
    // Leases first: a job that is put back runs at once.
    const laneCount = await releaseLanesOf(database, processIds);
    const jobCount = await putBackJobsOf(dead.flatMap(({ brokerWorkerIds }) => brokerWorkerIds));
    await forgetWorkers(database, processIds);
    logger.warn(
      { processIds, deliveryQueues: laneCount, jobs: jobCount },
      'worker processes ended without releasing their work; this worker released it',
    );
  };
  return {
    async look() {
      await findDead().catch((error: unknown) =>
        logger.warn({ error }, 'the search for killed workers failed; the next round tries again'),
      );
    },
    reconcileLoop: {
      name: 'take up the work of workers that were killed',
      kind: 'departed-workers',
      run,
    },
  };
}
