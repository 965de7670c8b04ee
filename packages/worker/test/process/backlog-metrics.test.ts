import { createMetrics } from '@sluice/platform/telemetry/metrics';
import { afterEach, expect, test, vi } from 'vitest';
import { registerBacklogMetrics } from '../../src/process/backlog-metrics.ts';

afterEach(() => vi.useRealTimers());

test('a statement that is never answered is left behind: the next scrape asks anew', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const metrics = createMetrics('test');
  const lanes = { laneCount: 1, deliveryCount: 7, windowCount: 1, oldestAtMs: 1_000 };
  let isHanging = true;
  registerBacklogMetrics({
    metrics,
    producer: {
      commitBatchCounts: () => Promise.resolve([2]),
      failedCount: () => Promise.resolve(0),
      oldestCommitBatchAtMs: () => Promise.resolve(undefined),
    },
    findLaneBacklog: () =>
      isHanging
        ? new Promise(() => undefined)
        : Promise.resolve({ healthy: lanes, failing: { ...lanes, laneCount: 0 } }),
    findOldestProviderEvent: () => Promise.resolve(undefined),
    findOldestUntold: () => Promise.resolve(undefined),
    now: () => 5_000,
  });
  const scrape = async (): Promise<string> => {
    const page = metrics.render();
    await vi.advanceTimersByTimeAsync(5_000);
    return page;
  };
  const cut = await scrape();
  expect(cut).toContain('sluice_queued_envelopes{service="test"} 2');
  expect(cut).not.toMatch(/^sluice_undelivered_deliveries\{/m);
  isHanging = false;
  expect(await scrape()).toContain('sluice_undelivered_deliveries{service="test"} 7');
});
