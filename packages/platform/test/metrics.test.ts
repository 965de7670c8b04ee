import { expect, test, vi } from 'vitest';
import { createMetrics } from '../src/metrics.ts';

const BLOCKED_MS = 900;
/** A look is due each half second, so it comes so much too late at least. */
const SEEN_SECONDS = (BLOCKED_MS - 500) / 1_000;

test('an event loop that was blocked is told by its delay, once, without the time between two looks', async () => {
  const metrics = createMetrics('test');
  const delaySeconds = async () =>
    Number(/^sluice_event_loop_delay_seconds\S* (\S+)$/m.exec(await metrics.render())?.[1]);
  expect(await delaySeconds()).toBeLessThan(SEEN_SECONDS);
  const until = performance.now() + BLOCKED_MS;
  while (performance.now() < until);
  await vi.waitFor(async () => expect(await delaySeconds()).toBeGreaterThanOrEqual(SEEN_SECONDS));
  expect(await delaySeconds()).toBeLessThan(SEEN_SECONDS);
});

test('no delay is told under a name that has the time between two looks in it', async () => {
  const page = await createMetrics('test').render();
  expect(page).toContain('nodejs_eventloop_lag_seconds');
  expect(page).not.toMatch(/nodejs_eventloop_lag_\w+_seconds/);
});
