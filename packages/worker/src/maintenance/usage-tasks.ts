/**
 * Sums up ended days of usage, of every account (`database/src/credits/usage-watermarks.ts`). A day ends some time
 * after its last hour, so that its runs can be read one by one for a while.
 *
 * Has it done by a BullMQ job scheduler: one job in each interval for all workers together. If all
 * workers were late, the next job is due at once and two may run together, which is safe. The interval is shorter
 * than a day, so that a day is closed soon after its time even if every worker was away at that moment.
 */
import type { Database } from '@sluice/database/connection/connection';
import { closeUsageDays } from '@sluice/database/credits/usage-watermarks';
import { addDays, utcDayOf } from '@sluice/domain/values/utc-day';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import {
  openTaskQueue,
  startTaskWorker,
  USAGE_TASKS,
} from '@sluice/platform/consumers/queue-tasks';
import { repeat } from '@sluice/platform/process/repeat';

export interface CloseUsageDeps {
  readonly database: Database;
  readonly now: () => number;
  /** Between the end of a day and its closing. */
  readonly dayClosedAfterMs: number;
  readonly isStopping: () => boolean;
}

export interface UsageTasksDeps extends Omit<CloseUsageDeps, 'isStopping'> {
  readonly broker: BrokerOptions;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
}

const CLOSE_INTERVAL_MS = 600_000;
/** A broker that lost its data has no schedule any more. */
const SCHEDULE_CHECK_INTERVAL_MS = 60_000;
/** Of one transaction: they cannot record meanwhile. */
const ACCOUNTS_MAX = 200;

export async function startUsageTasks(deps: UsageTasksDeps): Promise<void> {
  const { broker, lifecycle, logger } = deps;
  let isStopping = false;
  const queue = await openTaskQueue(broker, USAGE_TASKS);
  lifecycle.defer('usage queue', () => queue.close());
  const worker = startTaskWorker(broker, USAGE_TASKS, 1, () =>
    closeUsage({ ...deps, isStopping: () => isStopping }),
  );
  lifecycle.defer('usage worker', () => {
    isStopping = true;
    return worker.close();
  });
  const scheduling = repeat('schedule usage', SCHEDULE_CHECK_INTERVAL_MS, logger, () =>
    queue.schedule({}, CLOSE_INTERVAL_MS),
  );
  lifecycle.defer('usage schedule', () => scheduling.stop());
}

/**
 * May be cut short, run again and run by several workers at once: each step is one transaction that leaves accounts
 * further than it found them, or as they were.
 */
export async function closeUsage(deps: CloseUsageDeps): Promise<void> {
  const through = addDays(utcDayOf(deps.now() - deps.dayClosedAfterMs), -1);
  while (!deps.isStopping() && (await closeUsageDays(deps.database, through, ACCOUNTS_MAX)) > 0);
}
