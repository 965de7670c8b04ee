import { expect, test } from 'vitest';
import { measureClock } from '../../src/clock-difference.ts';
import { createTestDatabase } from '../../src/testing.ts';

const HOUR_MS = 3_600_000;

// The test's Postgres is on this machine, or on one with a clock of its own that is nearly right.
const NEARLY_MS = 30_000;

test.each([
  ['as it is', 0],
  ['an hour ahead', HOUR_MS],
  ['an hour behind', -HOUR_MS],
])('a clock %s is found to be so, whatever the time zone of the session', async (_, aheadMs) => {
  const { database } = await createTestDatabase('Asia/Kathmandu');
  const found = await measureClock(database, () => Date.now() + aheadMs);
  expect(Math.abs(found.aheadMs - aheadMs)).toBeLessThan(found.uncertaintyMs + NEARLY_MS);
  expect(found.uncertaintyMs).toBeGreaterThanOrEqual(0);
});

test('an answer that was long on its way counts for less than one that came at once', async () => {
  const { database } = await createTestDatabase();
  // Read before and after each question: the first seems to take a minute.
  const readings = [60_000, 0];
  const found = await measureClock(database, () => Date.now() - (readings.shift() ?? 0));
  expect(found.uncertaintyMs).toBeLessThan(30_000);
  expect(Math.abs(found.aheadMs)).toBeLessThan(found.uncertaintyMs + NEARLY_MS);
});
