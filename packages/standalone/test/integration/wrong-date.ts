/**
 * A service whose machine's clock is set: its own time of day changes, the time of Postgres and of its timers does not.
 */
import type { ServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { expect, vi } from 'vitest';

const SET_SIGNAL = 'SIGUSR2';
const SET_LINE = 'the clock was set';
/** Longer than the minute between two measurements: one that fails or is too slow counts only at the next time. */
const WAIT = { timeout: 100_000, interval: 50 };

/**
 * `NODE_OPTIONS` of a service whose `Date` is wrong from the start, or from `setClock` on. From then on its waits of a
 * minute do not end: a worker ends at its next measurement of its clock, and a slow test must be over before.
 *
 * @param setByMs - how far ahead of the machine's clock it is.
 */
export const settingClock = (setByMs: number, isAtStart: boolean): string =>
  `--import=data:text/javascript,${encodeURIComponent(`
  const right = Date;
  let aheadMs = ${isAtStart ? setByMs : 0};
  let isSet = ${isAtStart};
  const wait = setTimeout;
  const minuteWaits = [];
  globalThis.setTimeout = Object.assign((run, delayMs, ...rest) => {
    // Long waits of a process end together, up to half a second early or 2 ms late.
    if (!(delayMs > 59_000 && delayMs < 60_100)) return wait(run, delayMs, ...rest);
    const timer = wait(run, isSet ? 600_000 : delayMs, ...rest);
    minuteWaits.push(timer);
    return timer;
  }, wait);
  globalThis.Date = class extends right {
    constructor(...given) { given.length === 0 ? super(right.now() + aheadMs) : super(...given); }
    static now() { return right.now() + aheadMs; }
  };
  process.once('${SET_SIGNAL}', () => {
    aheadMs = ${setByMs};
    isSet = true;
    for (const timer of minuteWaits) clearTimeout(timer);
    process.stdout.write(JSON.stringify({ msg: '${SET_LINE}' }) + '\\n');
  });`)}`;

/** Of a service that was started with `settingClock`. */
export async function setClock({
  kill,
  logs,
}: Pick<ServiceUnderTest, 'kill' | 'logs'>): Promise<void> {
  void kill(SET_SIGNAL);
  const line = expect.objectContaining({ msg: SET_LINE });
  await vi.waitFor(() => expect(logs).toContainEqual(line), WAIT);
}

/**
 * Of a worker, after its first measurement. Between two measurements it goes on, which is the time that a test looks at.
 */
export async function setClockOfWorker(
  worker: Pick<ServiceUnderTest, 'kill' | 'logs' | 'url'>,
): Promise<void> {
  await vi.waitFor(async () => {
    const page = await (await fetch(`${worker.url}/metrics`)).text();
    expect(page).toMatch(/^sluice_clock_ahead_seconds\S* \S+$/m);
  }, WAIT);
  await setClock(worker);
}
