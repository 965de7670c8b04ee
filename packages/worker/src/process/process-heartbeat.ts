/** State that a worker reports every ten seconds: its clock, its broker, and stuck work. */
import { heartbeatOf } from '@sluice/database/maintenance/process-heartbeats';
import type { Database } from '@sluice/database/connection/connection';
import type { WatchReport } from '@sluice/platform/consumers/queue-watch';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { identityOfProcess, startHeartbeat } from '@sluice/platform/telemetry/heartbeat';
import type { ClockWatch } from '@sluice/platform/telemetry/watch-clock';

export interface ProcessHeartbeatOptions {
  readonly database: Database;
  readonly newId: () => string;
  readonly process: { readonly pid: number };
  readonly clockWatch: ClockWatch;
  readonly watchReport: () => WatchReport;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
}

export function startProcessHeartbeat(options: ProcessHeartbeatOptions): void {
  const { database, newId, process, clockWatch, watchReport, logger, lifecycle } = options;
  const processId = newId();
  const identity = { processId, service: 'worker', ...identityOfProcess(process.pid) } as const;
  const beats = heartbeatOf(database, identity, () => {
    const { isBrokerAnswering, stuckQueues } = watchReport();
    return { clockAheadMs: clockWatch.aheadMs(), isBrokerAnswering, stuckQueues };
  });
  startHeartbeat({ ...beats, logger, lifecycle });
}
