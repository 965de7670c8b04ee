/** Report of an intake about itself every ten seconds: its clock, and its disk buffer. */
import { heartbeatOf } from '@sluice/database/maintenance/process-heartbeats';
import type { Database } from '@sluice/database/connection/connection';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { identityOfProcess, startHeartbeat } from '@sluice/platform/telemetry/heartbeat';
import type { ClockWatch } from '@sluice/platform/telemetry/watch-clock';
import type { DiskBuffer } from './commit/disk-buffer.ts';

export interface ProcessHeartbeatOptions {
  readonly database: Database;
  readonly newId: () => string;
  readonly process: { readonly pid: number };
  readonly clockWatch: ClockWatch;
  readonly diskBuffer: DiskBuffer;
  readonly now: () => number;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
}

export function startProcessHeartbeat(options: ProcessHeartbeatOptions): void {
  const { database, newId, process, clockWatch, diskBuffer, now, logger, lifecycle } = options;
  const processId = newId();
  const identity = { processId, service: 'intake', ...identityOfProcess(process.pid) } as const;
  const beats = heartbeatOf(database, identity, () => ({
    clockAheadMs: clockWatch.aheadMs(),
    spill: {
      sizeBytes: diskBuffer.sizeBytes,
      sizeBytesMax: diskBuffer.sizeBytesMax,
      commitBatchCount: diskBuffer.commitBatchCount,
      oldestAgeMs: Math.max(0, now() - (diskBuffer.oldestAtMs() ?? now())),
    },
  }));
  startHeartbeat({ ...beats, logger, lifecycle });
}
