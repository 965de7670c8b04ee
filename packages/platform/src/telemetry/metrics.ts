/**
 * Prometheus metrics. Hot paths count in plain numbers; a gauge or counter here reads them when it
 * is scraped, because a labelled `inc()` costs more than the call it counts.
 */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import { RELEASE_VERSION } from '../process/release.ts';
import { waitForMark } from '../process/repeat.ts';
import { within } from '../process/within.ts';

export interface Metrics {
  /** A counter whose running total `read` gives at scrape time. */
  counter(name: string, help: string, read: () => number): void;
  /** The same by the values of one label, which must be few. */
  counterBy(
    label: string,
    name: string,
    help: string,
    read: () => ReadonlyMap<string, number>,
  ): void;
  /**
   * A value that goes up and down, read at scrape time. A read that fails, or is not done in three seconds, leaves it
   * out: a missing value must not look like 0, and one store that hangs must not keep the page from being scraped.
   */
  gauge(name: string, help: string, read: () => number | Promise<number>): void;
  /** The text page for `/metrics`. */
  render(): Promise<string>;
  readonly contentType: string;
}

/**
 * Interval of the samples of the event loop's delay. Each sample wakes an idle process for 0.1 ms. Every 10 ms took
 * 2.2 % of a core, and every 100 ms was ten of an idle process's 12 to 22 wake-ups a second. A delay worth an alarm
 * is longer than this.
 */
const LOOP_LOOK_INTERVAL_MS = 500;
/** The library's own sampling is switched off: the delay that it reports includes the time between two samples. */
const NEVER_MS = 2 ** 31 - 1;
/** Prometheus waits for 10 s, `sluice status` for 5. */
export const READ_MS_MAX = 3_000;
const LOOKS_OF_LIBRARY = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'];

/** One registry a process; names follow `sluice_<what>_<unit>[_total]`. */
export function createMetrics(service: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({
    register: registry,
    eventLoopMonitoringPrecision: NEVER_MS,
  });
  for (const name of LOOKS_OF_LIBRARY)
    registry.removeSingleMetric(`nodejs_eventloop_lag_${name}_seconds`);
  // The usual name: joined with any metric, it shows the version of the process.
  new Gauge({
    name: 'sluice_build_info',
    help: '1, with the version of the process as a label',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version: RELEASE_VERSION }, 1);
  const metrics = metricsOf(registry);
  metrics.gauge(
    'sluice_event_loop_delay_seconds',
    'The longest wait for the event loop since the last scrape',
    watchEventLoop(),
  );
  return metrics;
}

/** @returns the longest delay since the last call, in seconds. */
function watchEventLoop(): () => number {
  let longestMs = 0;
  let lookedAtMs = performance.now();
  const look = (): void => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lookedAtMs - LOOP_LOOK_INTERVAL_MS);
    lookedAtMs = nowMs;
    // Together with the repetitions of the process: a look of its own would wake it twice as often.
    waitForMark(LOOP_LOOK_INTERVAL_MS, look, false);
  };
  look();
  return () => {
    const delaySeconds = longestMs / 1_000;
    longestMs = 0;
    return delaySeconds;
  };
}

function metricsOf(registry: Registry): Metrics {
  return {
    counter(name, help, read) {
      new Counter({
        name,
        help,
        registers: [registry],
        collect() {
          this.reset();
          this.inc(read());
        },
      });
    },
    counterBy(label, name, help, read) {
      new Counter({
        name,
        help,
        labelNames: [label],
        registers: [registry],
        collect() {
          this.reset();
          for (const [value, total] of read()) this.inc({ [label]: value }, total);
        },
      });
    },
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers: [registry],
        async collect() {
          try {
            const value = read();
            this.set(typeof value === 'number' ? value : await within(READ_MS_MAX, value));
          } catch {
            // Scrapes go on while the broker is away; `/readyz` reports that. Not `reset`, which is 0.
            this.remove();
          }
        },
      });
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
