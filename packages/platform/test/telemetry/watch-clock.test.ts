import { Writable } from 'node:stream';
import type { ClockDifference } from '@sluice/domain/values/clock-difference';
import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createLifecycle } from '../../src/process/lifecycle.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { watchClock } from '../../src/telemetry/watch-clock.ts';

const WAIT = { timeout: 30_000, interval: 1 };

/** The test decides the measurements and their times. */
function startWatch() {
  const lines: string[] = [];
  const logger = pino(
    new Writable({
      write(chunk: Buffer, _, done) {
        lines.push((JSON.parse(chunk.toString()) as { msg: string }).msg);
        done();
      },
    }),
  );
  const lifecycle = createLifecycle(logger);
  const metrics = createMetrics('test');
  let next: PromiseWithResolvers<ClockDifference | undefined> = Promise.withResolvers();
  let count = 0;
  const measured: ClockDifference[] = [];
  watchClock({
    measure() {
      count += 1;
      next = Promise.withResolvers();
      return next.promise;
    },
    onMeasured: (difference) => measured.push(difference),
    metrics,
    logger,
    lifecycle,
    intervalMs: 0,
  });
  onTestFinished(async () => {
    next.resolve(undefined);
    await lifecycle.stop();
  });
  const settle = async (by: () => void): Promise<void> => {
    const before = count;
    by();
    await vi.waitFor(() => expect(count).toBe(before + 1), WAIT);
  };
  return {
    lines,
    measured,
    find: (aheadMs: number, uncertaintyMs = 1) =>
      settle(() => next.resolve({ aheadMs, uncertaintyMs })),
    cannotYet: () => settle(() => next.resolve(undefined)),
    fail: () => settle(() => next.reject(new Error('away'))),
    gauge: async () => /^sluice_clock_ahead_seconds\S* (\S+)$/m.exec(await metrics.render())?.[1],
  };
}

test('the metric always has the clock difference, and the log has it only if it is large', async () => {
  const watch = startWatch();
  expect(await watch.gauge()).toBeUndefined();
  await watch.find(250);
  expect(await watch.gauge()).toBe('0.25');
  expect(watch.lines).toEqual([]);
  await watch.find(-42_000);
  expect(await watch.gauge()).toBe('-42');
  expect(watch.lines).toEqual([
    expect.stringMatching(/^the clock of this machine is 42 s behind the clock of Postgres/),
  ]);
  expect(watch.measured.map(({ aheadMs }) => aheadMs)).toEqual([250, -42_000]);
});

test('a failed or slow measurement clears the metric and writes no log line', async () => {
  const watch = startWatch();
  for (const unknown of [watch.cannotYet, watch.fail, () => watch.find(90_000, 5_000)]) {
    await watch.find(1_000);
    expect(await watch.gauge()).toBe('1');
    await unknown();
    expect(await watch.gauge()).toBeUndefined();
  }
  expect(watch.measured.every(({ aheadMs }) => aheadMs === 1_000)).toBe(true);
  expect(watch.lines.filter((line) => line.includes('clock of this machine'))).toEqual([]);
});
