/**
 * The fleet's waiting work, and the age of the oldest part.
 *
 * These are the figures of the alerts that wake operators (`infra/observability/alerts.yaml`). Depth alone is no sign:
 * 100,000 commit batches are two seconds of work, and one that is ten minutes old is an outage.
 *
 * Every worker shows the same figures, from the broker and from Postgres; dashboards take the maximum.
 */
import type { LaneBacklog } from '@sluice/database/delivery/lane-backlog';
import { READ_MS_MAX, type Metrics } from '@sluice/platform/telemetry/metrics';
import { within } from '@sluice/platform/process/within';

export interface BacklogDependencies {
  readonly metrics: Metrics;
  readonly producer: {
    commitBatchCounts(): Promise<number[]>;
    failedCount(): Promise<number>;
    oldestCommitBatchAtMs(): Promise<number | undefined>;
  };
  readonly findLaneBacklog: () => Promise<{
    readonly healthy: LaneBacklog;
    readonly failing: LaneBacklog;
  }>;
  /** When the oldest of the payment provider's events that still wait came. */
  readonly findOldestProviderEvent: () => Promise<Date | undefined>;
  /** Time of the oldest entry of the outbox that was tried and is not sent. */
  readonly findOldestUntold: () => Promise<Date | undefined>;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Registers the gauges; each asks when it is scraped. */
export function registerBacklogMetrics({
  metrics,
  producer,
  findLaneBacklog,
  findOldestProviderEvent,
  findOldestUntold,
  now,
}: BacklogDependencies): void {
  const ageSeconds = (sinceMs: number | null | undefined): number =>
    sinceMs == null ? 0 : Math.max(0, (now() - sinceMs) / 1_000);

  // One scrape reads five of them at once: one statement for all. One that is never answered must not be the next
  // scrape's too.
  let underWay: ReturnType<typeof findLaneBacklog> | undefined;
  const lanes = (): ReturnType<typeof findLaneBacklog> =>
    (underWay ??= within(READ_MS_MAX, findLaneBacklog()).finally(() => (underWay = undefined)));

  metrics.gauge(
    'sluice_queued_envelopes',
    'Commit batches that wait or run, all shards',
    async () => (await producer.commitBatchCounts()).reduce((sum, count) => sum + count, 0),
  );
  metrics.gauge('sluice_failed_envelopes', 'Commit batches that failed, all shards', () =>
    producer.failedCount(),
  );
  metrics.gauge(
    'sluice_unprocessed_oldest_seconds',
    'Age of the oldest commit batch that is not processed',
    async () => ageSeconds(await producer.oldestCommitBatchAtMs()),
  );
  metrics.gauge(
    'sluice_undelivered_deliveries',
    'Deliveries that wait in delivery queues whose endpoint answers',
    async () => (await lanes()).healthy.deliveryCount,
  );
  metrics.gauge(
    'sluice_undelivered_oldest_seconds',
    'Age of the oldest of them that does not wait for the rate limit of its webhook',
    async () => ageSeconds((await lanes()).healthy.oldestAtMs),
  );
  metrics.gauge(
    'sluice_window_deliveries',
    'Sum of the concurrency limits of those delivery queues',
    async () => (await lanes()).healthy.windowCount,
  );
  metrics.gauge(
    'sluice_failing_lanes',
    'Webhooks whose endpoint fails and whose deliveries are blocked',
    async () => (await lanes()).failing.laneCount,
  );
  metrics.gauge(
    'sluice_held_back_deliveries',
    'Blocked deliveries',
    async () => (await lanes()).failing.deliveryCount,
  );
  metrics.gauge(
    'sluice_held_back_oldest_seconds',
    'Age of the oldest of them; it is abandoned seven days after its first attempt',
    async () => ageSeconds((await lanes()).failing.oldestAtMs),
  );
  metrics.gauge(
    'sluice_vendor_event_oldest_seconds',
    'Age of the oldest event of the payment provider that is stored and not processed',
    async () => ageSeconds((await findOldestProviderEvent())?.getTime()),
  );
  metrics.gauge(
    'sluice_outbox_oldest_seconds',
    'Age of the oldest outbox message, such as a mail, that failed and is not sent',
    async () => ageSeconds((await findOldestUntold())?.getTime()),
  );
}
