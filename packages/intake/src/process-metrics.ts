/** What one intake process has taken and has in progress, for `/metrics`. */
import type { Metrics } from '@sluice/platform/telemetry/metrics';
import type { Producer } from '@sluice/platform/queue/queue';
import type { Batcher } from './commit/batcher.ts';
import type { DiskBuffer } from './commit/disk-buffer.ts';

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
    'Envelopes sent to the broker',
    () => batcher.commitBatchCount,
  );
  metrics.counter(
    'sluice_intake_operations_total',
    'Operations taken',
    () => batcher.operationCount,
  );
  metrics.counter(
    'sluice_intake_skimmed_operations_total',
    'Operations of plain track calls, which take the short way',
    () => batcher.fastPathOperationCount,
  );
  metrics.counter(
    'sluice_intake_rate_limited_total',
    'Calls put off because their workspace was beyond its rate',
    rateLimitedCount,
  );
  metrics.gauge(
    'sluice_intake_pending_bytes',
    'Request bytes that wait for the broker',
    () => batcher.pendingSizeBytes,
  );
  metrics.gauge(
    'sluice_intake_keys_age_seconds',
    'Since the keys were read: one revoked since still opens, one made since does not',
    keysAgeSeconds,
  );
  metrics.gauge(
    'sluice_intake_spill_bytes',
    'Kept on disk for the broker',
    () => diskBuffer.sizeBytes,
  );
  metrics.gauge(
    'sluice_intake_spill_envelopes',
    'Envelopes kept on disk for the broker',
    () => diskBuffer.commitBatchCount,
  );
  metrics.gauge(
    'sluice_intake_spill_oldest_seconds',
    'Age of the oldest flush kept on disk',
    () => {
      const oldestAtMs = diskBuffer.oldestAtMs();
      return oldestAtMs === undefined ? 0 : (now() - oldestAtMs) / 1_000;
    },
  );
  metrics.gauge(
    'sluice_broker_memory_ratio',
    'Of the memory that Redis may use, its fullest master; 0 where it may use any',
    async () => (await producer.fill()).ratio,
  );
  metrics.gauge(
    'sluice_full_brokers',
    '1 while Redis gets no more calls, because what is left of its memory is for the workers',
    async () => Number((await producer.fill()).isFull),
  );
}
