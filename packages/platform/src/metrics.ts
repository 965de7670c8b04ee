/**
 * Prometheus metrics. Hot paths count in plain numbers; a gauge or counter here reads them when it
 * is scraped, because a labelled `inc()` costs more than the call it counts.
 */
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';

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
  /** A value that goes up and down, read at scrape time. A failing read leaves it out. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void;
  /** The text page for `/metrics`. */
  render(): Promise<string>;
  readonly contentType: string;
}

/** How often the delay of the event loop is looked at: with the default of 10 ms an idle API took 2.2 % of a core, with this 0.3 %. */
const LOOP_LOOK_INTERVAL_MS = 100;

/** One registry a process; names follow `sluice_<what>_<unit>[_total]`. */
export function createMetrics(service: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({
    register: registry,
    eventLoopMonitoringPrecision: LOOP_LOOK_INTERVAL_MS,
  });
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
          this.reset();
          try {
            this.set(await read());
          } catch {
            // Scrapes go on while the broker is away; `/readyz` says so.
          }
        },
      });
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
