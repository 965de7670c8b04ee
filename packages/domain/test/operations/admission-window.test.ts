import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  ADMISSION_WINDOW_MAX,
  ADMISSION_WINDOW_MIN,
  ADMISSION_WINDOW_START,
  nextAdmissionWindow,
  nextUsualMs,
} from '../../src/operations/admission-window.ts';

const USUAL_MS = 20;
const after = (window: number, appliedAfterMs: number, isLimiting = true) =>
  nextAdmissionWindow(window, appliedAfterMs, USUAL_MS, isLimiting);

test('a window shrinks if its operations take long, and grows if they are quick', () => {
  expect(after(1_000, 200)).toBeLessThan(1_000);
  expect(after(1_000, 20)).toBeGreaterThan(1_000);
  expect(after(1_000, 40)).toBe(1_000);
});

test('a window does not grow if no operation waited for it', () => {
  expect(after(1_000, 20, false)).toBe(1_000);
  expect(after(1_000, 200, false)).toBeLessThan(1_000);
});

test('long and quick are times of the usual: the window of a slow machine does not shrink for its slowness', () => {
  expect(nextAdmissionWindow(1_000, 140, 80, true)).toBe(1_000);
  expect(nextAdmissionWindow(1_000, 130, 80, true)).toBeGreaterThan(1_000);
});

test('it stays within its bounds for any measured times', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 60_000, noNaN: true })), (times) => {
      let window = ADMISSION_WINDOW_START;
      let usualMs = USUAL_MS;
      for (const appliedAfterMs of times) {
        window = nextAdmissionWindow(window, appliedAfterMs, usualMs, true);
        usualMs = nextUsualMs(usualMs, appliedAfterMs);
        expect(window).toBeGreaterThanOrEqual(ADMISSION_WINDOW_MIN);
        expect(window).toBeLessThanOrEqual(ADMISSION_WINDOW_MAX);
        // A broker that hung for a minute is no sign of the usual time.
        expect(usualMs).toBeLessThanOrEqual(100);
      }
    }),
  );
});

/** Workers take 10 ms for a commit batch of any size, and apply so many operations a millisecond. */
test('workers of any speed are kept at work, and waiting operations are applied within three times the usual time', () => {
  fc.assert(
    fc.property(fc.integer({ min: 4, max: 200 }), (perMs) => {
      let window = ADMISSION_WINDOW_START;
      let longestMs = 0;
      let applied = 0;
      let lastedMs = 0;
      for (let turn = 0; turn < 400; turn++) {
        const appliedAfterMs = 10 + window / perMs;
        if (turn >= 100) {
          longestMs = Math.max(longestMs, appliedAfterMs);
          applied += window;
          lastedMs += appliedAfterMs;
        }
        window = after(window, appliedAfterMs);
      }
      const isBounded = window > ADMISSION_WINDOW_MIN && window < ADMISSION_WINDOW_MAX;
      if (!isBounded) return;
      expect(longestMs).toBeLessThan(3 * USUAL_MS);
      // Two windows take turns with several workers; one alone uses them for this much of the time.
      expect(applied / lastedMs / perMs).toBeGreaterThan(0.6);
    }),
  );
});
