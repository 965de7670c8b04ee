import { expect, test } from 'vitest';
import { measureClock } from '../../../src/connection/clock-difference.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const HOUR_MS = 3_600_000;

// The test's Postgres is on this machine, or on one with a clock of its own that is nearly right.
const NEARLY_MS = 30_000;

test.each([
  ['as it is', 0],
  ['an hour ahead', HOUR_MS],
  ['an hour behind', -HOUR_MS],
])('a clock %s is measured as such, in any time zone of the session', async (_, aheadMs) => {
  const { database } = await createTestDatabase('Asia/Kathmandu');
  const found = await measureClock(database, {
    now: () => Date.now() + aheadMs,
    monotonicNow: () => performance.now(),
  });
  expect(Math.abs(found.aheadMs - aheadMs)).toBeLessThan(found.uncertaintyMs + NEARLY_MS);
  expect(found.uncertaintyMs).toBeGreaterThanOrEqual(0);
});

test('an answer that was long on its way counts for less than one that came at once', async () => {
  const { database } = await createTestDatabase();
  // Read before and after each question: the first seems to take a minute.
  const late = (readings: number[], clock: () => number) => () => clock() - (readings.shift() ?? 0);
  const found = await measureClock(database, {
    now: late([60_000, 0], Date.now),
    monotonicNow: late([60_000, 0], () => performance.now()),
  });
  expect(found.uncertaintyMs).toBeLessThan(30_000);
  expect(Math.abs(found.aheadMs)).toBeLessThan(found.uncertaintyMs + NEARLY_MS);
});

// A wait that seemed negative counted as the most certain of all, with a clock that is not in force any more.
test.each([
  ['back', -HOUR_MS],
  ['on', HOUR_MS],
])('a clock that is set %s between question and answer is asked about again', async (_, byMs) => {
  const { database } = await createTestDatabase();
  let readCount = 0;
  const found = await measureClock(database, {
    now: () => Date.now() + (++readCount > 1 ? byMs : 0),
    monotonicNow: () => performance.now(),
  });
  expect(readCount).toBeGreaterThan(2);
  expect(found.uncertaintyMs).toBeGreaterThanOrEqual(0);
  expect(found.uncertaintyMs).toBeLessThan(NEARLY_MS);
  expect(Math.abs(found.aheadMs - byMs)).toBeLessThan(found.uncertaintyMs + NEARLY_MS);
});
