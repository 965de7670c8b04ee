/** Accepted and waiting work of one intake process, for `/metrics`. */
import type { Metrics } from '@sluice/platform/telemetry/metrics';
import type { Producer } from '@sluice/platform/queue/queue';
import type { UnauthorizedRecorder } from './auth/unauthorized-recorder.ts';
import type { CutConnections } from './connections/cut-connections.ts';
import type { Batcher } from './commit/batcher.ts';
import type { DiskBuffer } from './commit/disk-buffer.ts';
import type { Server } from './server.ts';

export interface ProcessMetricsDependencies {
  readonly metrics: Metrics;
  readonly batcher: Batcher;
  readonly diskBuffer: DiskBuffer;
  readonly producer: Producer;
  readonly keysAgeSeconds: () => number;
  /** Since the start. */
  readonly rateLimitedCount: () => number;
  readonly now: () => number;
}

/** Registers counters and gauges; each reads when it is scraped. */
export function registerProcessMetrics({
  metrics,
  batcher,
  diskBuffer,
  producer,
  keysAgeSeconds,
  rateLimitedCount,
  now,
}: ProcessMetricsDependencies): void {
  metrics.counter(
    'sluice_intake_flushes_total',
    'Group commits sent to the broker',
    () => batcher.flushCount,
  );
  metrics.counter(
    'sluice_intake_envelopes_total',
    'Commit batches sent to the broker',
    () => batcher.commitBatchCount,
  );
  metrics.counter(
    'sluice_intake_operations_total',
    'Operations accepted',
    () => batcher.operationCount,
  );
  metrics.counter(
    'sluice_intake_skimmed_operations_total',
    'Operations of simple track calls, parsed on the fast path',
    () => batcher.fastPathOperationCount,
  );
  metrics.counter(
    'sluice_intake_rate_limited_total',
    'Calls refused because their workspace exceeded its rate limit',
    rateLimitedCount,
  );
  metrics.gauge(
    'sluice_intake_pending_bytes',
    'Request bytes that wait for the broker',
    () => batcher.pendingSizeBytes,
  );
  metrics.gauge(
    'sluice_intake_waiting_operations',
    'Operations of workspaces that send much beside others, which wait to be admitted to the queues',
    () => batcher.lineOperationCount,
  );
  metrics.gauge(
    'sluice_intake_keys_age_seconds',
    'Age of the loaded API keys; newer keys and revocations are not in force yet',
    keysAgeSeconds,
  );
  metrics.gauge(
    'sluice_intake_spill_bytes',
    'Size of the local disk buffer',
    () => diskBuffer.sizeBytes,
  );
  metrics.gauge(
    'sluice_intake_spill_envelopes',
    'Commit batches in the local disk buffer',
    () => diskBuffer.commitBatchCount,
  );
  metrics.gauge(
    'sluice_intake_spill_oldest_seconds',
    'Age of the oldest flush in the local disk buffer',
    () => {
      const oldestAtMs = diskBuffer.oldestAtMs();
      return oldestAtMs === undefined ? 0 : Math.max(0, now() - oldestAtMs) / 1_000;
    },
  );
  metrics.gauge(
    'sluice_broker_memory_ratio',
    'Used fraction of the memory limit of Redis, at its fullest master; 0 without a limit',
    async () => (await producer.fill()).ratio,
  );
  metrics.gauge(
    'sluice_full_brokers',
    '1 while intake adds no calls to Redis, because workers need the remaining memory',
    async () => Number((await producer.fill()).isFull),
  );
}

export interface ServerMetricsDependencies {
  readonly metrics: Metrics;
  readonly unauthorized: Pick<UnauthorizedRecorder, 'reasonCounts'>;
  readonly server: Pick<Server, 'refusedCounts'>;
  readonly cuts: Pick<CutConnections, 'counts'>;
}

/** As `registerProcessMetrics`, of calls and connections that were not taken. */
export function registerServerMetrics({
  metrics,
  unauthorized,
  server,
  cuts,
}: ServerMetricsDependencies): void {
  metrics.counterBy(
    'reason',
    'sluice_intake_unauthorized_calls_total',
    'Calls that were not taken because of their credentials, by reason; permissive ones were answered 200',
    () => unauthorized.reasonCounts,
  );
  metrics.counterBy(
    'status',
    'sluice_intake_refused_calls_total',
    'Calls that were not taken, by the status of their answer',
    () => server.refusedCounts(),
  );
  metrics.counterBy(
    'reason',
    'sluice_intake_cut_connections_total',
    'Connections that intake cut without an answer, by reason: too_many_connections, too_many_chunks, too_many_bytes of all streams, silent, unread_answer',
    () => cuts.counts,
  );
}
