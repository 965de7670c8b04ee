/** Requests after an input of the user, and the page's own ones. */
import { expect, test, vi } from 'vitest';
import { isUnattended, reportUnsentInput, watchUserInput } from '../../src/client/user-input.ts';

test('the first request after an input of the user is attended, and the ones that a timer repeats are not', () => {
  const page = new EventTarget();
  watchUserInput(page);
  // The opening of the page.
  expect([isUnattended(), isUnattended()]).toEqual([false, true]);
  for (const type of ['pointerdown', 'keydown', 'click', 'wheel', 'input']) {
    page.dispatchEvent(new Event(type));
    expect([type, isUnattended(), isUnattended()]).toEqual([type, false, true]);
  }
  page.dispatchEvent(new Event('visibilitychange'));
  expect(isUnattended()).toBe(true);
});

test('inputs without a request are reported every ten minutes, and a page without an input sends no report', () => {
  vi.useFakeTimers();
  try {
    const page = new EventTarget();
    watchUserInput(page);
    isUnattended();
    const reports: boolean[] = [];
    const stop = reportUnsentInput(() => reports.push(isUnattended()));
    vi.advanceTimersByTime(1_200_000);
    expect(reports).toEqual([]);
    for (let count = 0; count < 3; count++) page.dispatchEvent(new Event('wheel'));
    vi.advanceTimersByTime(1_200_000);
    expect(reports).toEqual([false]);
    // The request of the screen itself has reported it.
    page.dispatchEvent(new Event('click'));
    isUnattended();
    vi.advanceTimersByTime(600_000);
    expect(reports).toEqual([false]);
    page.dispatchEvent(new Event('click'));
    stop();
    vi.advanceTimersByTime(1_200_000);
    expect(reports).toEqual([false]);
  } finally {
    vi.useRealTimers();
  }
});
