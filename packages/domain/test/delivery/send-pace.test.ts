import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SendPace } from '../../src/delivery/send-pace.ts';

/**
 * Starts whenever it may, looking at times that are up to `lateMs` late, in time slices that remember only the kept
 * state.
 */
function startTimes(
  rate: number,
  durationMs: number,
  late: readonly number[],
  timeSliceStarts: number,
) {
  const starts: number[] = [];
  let nowMs = 1_000_000;
  const endMs = nowMs + durationMs;
  let pace = new SendPace(rate, null, nowMs);
  for (let turn = 0; nowMs < endMs; turn++) {
    const waitMs = pace.waitMs(nowMs);
    if (waitMs === 0) {
      starts.push(nowMs);
      pace.start(nowMs);
      if (starts.length % timeSliceStarts === 0)
        pace = new SendPace(rate, Math.ceil(pace.nextStartAtMs), nowMs);
    } else {
      nowMs += waitMs + (late[turn % late.length] ?? 0);
    }
  }
  return starts;
}

test('each second has at most the rate, a tenth of it and one, with any drains of the lane', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2_000 }),
      fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 50 }),
      (rate, late, timeSliceStarts) => {
        const starts = startTimes(rate, 5_000, late, timeSliceStarts);
        const most = Math.floor(rate * 1.1 + 1 + 1e-6);
        for (let from = 0, to = 0; to < starts.length; to++) {
          while ((starts[to] ?? 0) - (starts[from] ?? 0) >= 1_000) from++;
          expect(to - from + 1).toBeLessThanOrEqual(most);
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('the rate is reached although every timer is late', () => {
  for (const rate of [1, 7, 100, 1_000]) {
    const starts = startTimes(rate, 20_000, [12, 3], 25);
    expect(starts.length).toBeGreaterThanOrEqual(Math.floor(rate * 20 * 0.97));
  }
});

test('after a pause the pace does not catch up', () => {
  const pace = new SendPace(10, null, 0);
  pace.start(0);
  const atMs = 60_000;
  const starts = Array.from({ length: 20 }, () => {
    const waitMs = pace.waitMs(atMs);
    if (waitMs === 0) pace.start(atMs);
    return waitMs === 0;
  });
  expect(starts.filter(Boolean)).toHaveLength(2);
});

test('a clock that was set back costs no more than one interval', () => {
  expect(new SendPace(2, 10_000_000, 5_000).waitMs(5_000)).toBeLessThanOrEqual(500);
});
