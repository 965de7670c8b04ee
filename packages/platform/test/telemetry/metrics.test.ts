import { afterEach, expect, test, vi } from 'vitest';
import { StallWatch } from '@sluice/platform/testing/stall-watch';
import { createLogger } from '../../src/process/logger.ts';
import { repeat } from '../../src/process/repeat.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';

const BLOCKED_MS = 900;
/** A look is due each half second, so it comes so much too late at least. */
const SEEN_SECONDS = (BLOCKED_MS - 500) / 1_000;
const TRIES_MAX = 3;

afterEach(() => vi.useRealTimers());

test('a blocked event loop is reported once by its delay, without the time between two looks', async () => {
  const metrics = createMetrics('test');
  const delaySeconds = async () =>
    Number(/^sluice_event_loop_delay_seconds\S* (\S+)$/m.exec(await metrics.render())?.[1]);
  // A page is without a delay, unless the machine stands still before it.
  const seesNone = () =>
    vi.waitFor(async () => expect(await delaySeconds()).toBeLessThan(SEEN_SECONDS), 30_000);
  for (let tries = 1; ; tries++) {
    await seesNone();
    const until = performance.now() + BLOCKED_MS;
    while (performance.now() < until);
    const stalls = new StallWatch();
    await vi.waitFor(
      async () => expect(await delaySeconds()).toBeGreaterThanOrEqual(SEEN_SECONDS),
      10_000,
    );
    const nextSeconds = await delaySeconds();
    await stalls.stop();
    // The next page reports a standstill of its own: then again.
    if (stalls.longestMs / 1_000 >= SEEN_SECONDS - 0.1 && tries < TRIES_MAX) continue;
    expect(nextSeconds).toBeLessThan(SEEN_SECONDS);
    return;
  }
});

test('the page leaves out the delay metrics that include the time between two looks', async () => {
  const page = await createMetrics('test').render();
  expect(page).toContain('nodejs_eventloop_lag_seconds');
  expect(page).not.toMatch(/nodejs_eventloop_lag_\w+_seconds/);
});

/** A page's value; undefined if the page has no such name. */
const valueOn = (page: string, name: string): string | undefined =>
  new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'm').exec(page)?.[1];

test('a metric that cannot be read is left out instead of 0, and returns once it can be read', async () => {
  const metrics = createMetrics('test');
  let isAway = false;
  metrics.gauge('waiting_seconds', 'Age', async () => {
    if (isAway) throw new Error('away');
    return 7;
  });
  expect(valueOn(await metrics.render(), 'waiting_seconds')).toBe('7');
  isAway = true;
  expect(valueOn(await metrics.render(), 'waiting_seconds')).toBeUndefined();
  isAway = false;
  expect(valueOn(await metrics.render(), 'waiting_seconds')).toBe('7');
});

test('a read that hangs does not keep other metrics from the page', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const metrics = createMetrics('test');
  metrics.gauge('of_a_store_that_hangs', 'Never read', () => new Promise<number>(() => undefined));
  metrics.gauge('of_another', 'Read', async () => 5);
  const page = metrics.render();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(valueOn(await page, 'of_another')).toBe('5');
  expect(valueOn(await page, 'of_a_store_that_hangs')).toBeUndefined();
});

test('the looks at the event loop wake an idle process together with its repetitions', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'performance'] });
  createMetrics('test');
  const repetition = repeat('test', 1_000, createLogger('test', 'silent'), () => Promise.resolve());
  // Each second the look and the repetition end at one mark, and the look ends at the mark between.
  await vi.advanceTimersByTimeAsync(5_250);
  expect(vi.getTimerCount()).toBeLessThanOrEqual(2);
  let wakeUps = 0;
  for (; wakeUps < 20; wakeUps++) {
    const beforeMs = performance.now();
    await vi.advanceTimersToNextTimerAsync();
    expect(performance.now() - beforeMs).toBeGreaterThan(100);
  }
  await repetition.stop();
});
