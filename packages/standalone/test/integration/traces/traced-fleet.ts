/** Services that trace, and the collector that listens to them. */
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { startSimulator } from '@sluice/billing-vendor/simulator/simulator';
import {
  startCollectorUnderTest,
  type CollectedSpan,
} from '@sluice/platform/testing/collector-under-test';
import { expect, vi } from 'vitest';
import { startFleet, WAIT } from '../fleet-under-test.ts';
import { addWebhook, startEndpoint } from './traced-calls.ts';

/** A fleet that sends its spans to a collector, with the simulated payment provider and a webhook. */
export async function startTracedFleet() {
  const [collector, endpoint, simulator] = await Promise.all([
    startCollectorUnderTest(),
    startEndpoint(),
    startSimulator({
      host: '127.0.0.1',
      port: 0,
      webhookSecret: 'whsec_of_this_test',
      catalogue: readCatalogue(undefined),
      now: Date.now,
      random: Math.random,
    }),
  ]);
  const fleet = await startFleet('redis', {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    SIMULATOR_URL: `http://127.0.0.1:${simulator.port}`,
  });
  return {
    collector,
    endpoint,
    fleet,
    webhookId: await addWebhook(fleet, endpoint),
    /** The spans of a trace by name, as soon as there are so many of each. */
    spansOf: (traceId: string, counts: Readonly<Record<string, number>>) =>
      vi.waitFor(() => {
        const spans = collector.spans.filter((span) => span.traceId === traceId);
        const byName = Map.groupBy(spans, ({ name }) => name);
        const found = [...byName].map(([name, { length }]) => [name, length]);
        expect(Object.fromEntries(found)).toEqual(counts);
        return (name: string): CollectedSpan[] => byName.get(name) ?? [];
      }, WAIT),
    async close() {
      await fleet.close();
      await simulator.close();
      endpoint.close();
      collector.close();
    },
  };
}

export type TracedFleet = Awaited<ReturnType<typeof startTracedFleet>>;
