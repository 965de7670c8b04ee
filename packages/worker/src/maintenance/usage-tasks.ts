/**
 * Has the days of usage closed, by a BullMQ job scheduler: one job in each interval for all workers together. If all
 * workers were late, the next job is due at once and two may run together, which is safe. The interval is shorter
 * than a day, so that a day is closed soon after its time even if every worker was away at that moment.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/queue';
import {
  openTaskQueue,
  startTaskWorker,
  USAGE_TASKS,
} from '@sluice/platform/consumers/queue-tasks';
import { repeat } from '@sluice/platform/process/repeat';
import { closeUsage } from './close-usage.ts';

export interface UsageTasksDeps {
  readonly broker: BrokerOptions;
  readonly database: Database;
  readonly dayClosedAfterMs: number;
  readonly now: () => number;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
}

const CLOSE_INTERVAL_MS = 600_000;
/** A broker that lost its data has no schedule any more. */
const SCHEDULE_CHECK_INTERVAL_MS = 60_000;

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
