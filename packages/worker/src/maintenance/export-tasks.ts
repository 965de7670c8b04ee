/** Makes exports of the audit log: the ones in the queue, and the ones that it has lost. */
import type { Database } from '@sluice/database/connection/connection';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import {
  EXPORT_TASKS,
  openTaskQueue,
  startTaskWorker,
} from '@sluice/platform/consumers/queue-tasks';
import { exportAuditLogs, reconcileExports } from './export-audit-logs.ts';
import type { ReconcileLoop } from '../process/reconcile-loops.ts';

export interface ExportTasksDeps {
  readonly broker: BrokerOptions;
  readonly database: Database;
  readonly now: () => number;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
}

const CONCURRENCY = 2;
const LEASE_MS = 10_000;
const ROWS_PER_PART = 2_000;
const RECONCILE_INTERVAL_MS = 2_000;

/**
 * Starts the consumer of the queue, which stops with `lifecycle`.
 *
 * @returns the loop that finds exports that the queue has lost.
 */
export async function startExportTasks(deps: ExportTasksDeps): Promise<ReconcileLoop> {
  const { broker, database, now, logger, lifecycle } = deps;
  let isStopping = false;
  const queue = await openTaskQueue(broker, EXPORT_TASKS);
  lifecycle.defer('export queue', () => queue.close());
  const worker = startTaskWorker(broker, EXPORT_TASKS, CONCURRENCY, async (key) => {
    const outcome = await exportAuditLogs(
      {
        database,
        now,
        leaseMs: LEASE_MS,
        rowsPerPart: ROWS_PER_PART,
        isStopping: () => isStopping,
      },
      key,
    );
    logger.info({ ...key, outcome }, 'export of an audit log');
  });
  lifecycle.defer('export worker', () => {
    isStopping = true;
    return worker.close();
  });
  return {
    name: 'sweep exports',
    kind: 'exports',
    intervalMs: RECONCILE_INTERVAL_MS,
    run: () => reconcileExports({ database, wake: (key) => queue.wake(key), now }),
  };
}
