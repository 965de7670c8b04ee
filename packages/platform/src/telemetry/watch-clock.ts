/** Reports the difference of this process' clock from Postgres' clock: in a metric, and in the log if it is large. */
import {
  describeDifference,
  judgeClock,
  type ClockDifference,
} from '@sluice/domain/values/clock-difference';
import type { Lifecycle } from '../process/lifecycle.ts';
import type { Logger } from '../process/logger.ts';
import type { Metrics } from './metrics.ts';
import { repeat } from '../process/repeat.ts';

export interface ClockWatchOptions {
  /** Undefined if it cannot be measured yet. */
  readonly measure: () => Promise<ClockDifference | undefined>;
  /** For a process that may not go on with any clock. */
  readonly onMeasured?: (difference: ClockDifference) => unknown;
  readonly metrics: Pick<Metrics, 'gauge'>;
  readonly logger: Logger;
  readonly lifecycle: Pick<Lifecycle, 'defer'>;
  /** A minute by default. */
  readonly intervalMs?: number;
}

const INTERVAL_MS = 60_000;

export interface ClockWatch {
  /** Of the process' clock before Postgres'; null while it is not measured. */
  readonly aheadMs: () => number | null;
}

/** Measures now and again and again. While it cannot be measured, the metric is left out. */
export function watchClock(options: ClockWatchOptions): ClockWatch {
  const { measure, onMeasured, metrics, logger, lifecycle, intervalMs = INTERVAL_MS } = options;
  let latest: ClockDifference | undefined;
  metrics.gauge(
    'sluice_clock_ahead_seconds',
    'Seconds by which the clock of this process is ahead of the clock of Postgres; below 0 if it is behind',
    () => {
      if (latest === undefined) throw new Error('not measured');
      return latest.aheadMs / 1_000;
    },
  );
  const watch = repeat('measure the clock', intervalMs, logger, async () => {
    const difference = await measure().catch((error: unknown) => {
      latest = undefined;
      throw error;
    });
    const verdict = difference && judgeClock(difference);
    latest = verdict === 'unclear' ? undefined : difference;
    if (latest === undefined) return;
    if (verdict !== 'alike') {
      logger.warn(
        { aheadSeconds: latest.aheadMs / 1_000 },
        `the clock of this machine is ${describeDifference(latest)} the clock of Postgres; due times and expiries are wrong by that much; synchronize both with a time server`,
      );
    }
    await onMeasured?.(latest);
  });
  lifecycle.defer('watch of the clock', () => watch.stop());
  return { aheadMs: () => latest?.aheadMs ?? null };
}
