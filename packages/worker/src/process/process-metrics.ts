/** Metrics of one worker's finished and present work, for `/metrics`; `backlog-metrics.ts` has the waiting work. */
import type { Metrics } from '@sluice/platform/telemetry/metrics';
import type { ConsumerReport } from '@sluice/platform/consumers/queue-consumers';
import { inFlightCount, type LanePermits } from '../scheduling/lane-permits.ts';

export interface ProcessMetricsDependencies {
  readonly metrics: Metrics;
  /** Since the start. */
  readonly counts: () => {
    readonly appliedCount: number;
    readonly operationCount: number;
    readonly deadLetteredCount: number;
    readonly deliveredTimeSliceCount: number;
  };
  /** In the database, of all processes. */
  readonly countDeadLettered: () => Promise<number>;
  readonly countPurchasesInReview: () => Promise<number>;
  readonly report: () => ConsumerReport;
  /** Posts to endpoints so far, by outcome. */
  readonly attempts: ReadonlyMap<string, number>;
  /** Calls of the payment provider so far, by outcome. */
  readonly providerCalls: ReadonlyMap<string, number>;
  readonly permits: LanePermits;
  /** How long the oldest drain of a delivery queue has run; 0 without one. */
  readonly oldestDrainMs: () => number;
}

/** Registers counters and gauges; each reads when it is scraped. */
export function registerProcessMetrics({
  metrics,
  counts,
  countDeadLettered,
  countPurchasesInReview,
  report,
  attempts,
  providerCalls,
  permits,
  oldestDrainMs,
}: ProcessMetricsDependencies): void {
  metrics.counter(
    'sluice_worker_envelopes_total',
    'Commit batches applied',
    () => counts().appliedCount,
  );
  metrics.counter(
    'sluice_worker_operations_total',
    'Operations in applied commit batches',
    () => counts().operationCount,
  );
  metrics.counter(
    'sluice_worker_lane_slices_total',
    'Drains of delivery queues',
    () => counts().deliveredTimeSliceCount,
  );
  metrics.counter(
    'sluice_worker_parked_operations_total',
    'Operations that could not be applied and were dead-lettered',
    () => counts().deadLetteredCount,
  );
  metrics.gauge(
    'sluice_parked_operations',
    'Dead-lettered operations, at most 1,000 counted',
    countDeadLettered,
  );
  metrics.gauge(
    'sluice_set_aside_purchases',
    'Purchases in manual review, at most 1,000 counted',
    countPurchasesInReview,
  );
  metrics.counter(
    'sluice_worker_recovered_jobs_total',
    'Jobs whose hand-over got lost, put back',
    () => report().recoveredJobs,
  );
  metrics.counter(
    'sluice_worker_replaced_workers_total',
    'Workers of a queue that acquired no jobs, replaced',
    () => report().replacedWorkers,
  );
  metrics.gauge(
    'sluice_worker_failing_seconds',
    'How long each try to apply a commit batch has failed; 0 while any succeeds',
    () => report().failing?.seconds ?? 0,
  );
  metrics.counterBy(
    'outcome',
    'sluice_worker_attempts_total',
    'Posts to endpoints: delivered, status, or the class of the failure',
    () => attempts,
  );
  metrics.counterBy(
    'outcome',
    'sluice_vendor_calls_total',
    'Calls to the payment provider: ok, declined, refused, or unknown if no conclusive answer came',
    () => providerCalls,
  );
  metrics.gauge(
    'sluice_worker_in_flight_deliveries',
    'Requests to endpoints in flight, retry probes and slow ones included',
    () => inFlightCount(permits),
  );
  metrics.gauge(
    'sluice_worker_waiting_lanes',
    'Delivery queues that wait for a concurrency permit of this process',
    () => permits.deliveries.waitingCount + permits.probes.waitingCount,
  );
  metrics.gauge(
    'sluice_worker_oldest_drain_seconds',
    'How long the oldest present drain of a delivery queue has run; 0 without one',
    () => oldestDrainMs() / 1_000,
  );
}
