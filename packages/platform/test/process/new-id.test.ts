/** Ids of events and commit batches: ULIDs that contain their time, never repeat and never go back. */
import { ulidTimeMs } from '@sluice/domain/values/ulid';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createIdGenerator } from '../../src/process/new-id.ts';

/** Ids at these times, one after the other. */
function idsAt(timesMs: readonly number[]): string[] {
  let nowMs = 0;
  const next = createIdGenerator(() => nowMs);
  return timesMs.map((timeMs) => {
    nowMs = timeMs;
    return next();
  });
}

const clock = fc.array(fc.integer({ min: 0, max: 2 ** 48 - 1 }), { minLength: 1, maxLength: 50 });

describe('an id', () => {
  test('is a ULID whose time is the clock’s', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), (timeMs) => {
        const [id] = idsAt([timeMs]);
        expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
        expect(ulidTimeMs(id as string)).toBe(timeMs);
      }),
    );
  });

  test('is higher than every id before it, even if the clock stands or goes back', () => {
    fc.assert(
      fc.property(clock, (timesMs) => {
        const ids = idsAt(timesMs);
        expect(ids).toEqual([...new Set(ids)].toSorted());
      }),
    );
  });

  test('is of its own within a millisecond, however many there are, and stays in its time', () => {
    const ids = idsAt(Array.from({ length: 1_100_000 }, () => 1_767_261_600_000));
    for (let index = 1; index < ids.length; index++)
      if ((ids[index] as string) <= (ids[index - 1] as string)) throw new Error(`at ${index}`);
    expect(ulidTimeMs(ids.at(-1) as string)).toBe(1_767_261_600_000);
  });

  test('differs from the ids of other processes by 80 random bits after the time', () => {
    const seen = Array.from({ length: 16 }, () => new Set<string>());
    for (let count = 0; count < 2_000; count++) {
      const [id] = idsAt([5]);
      for (const [place, digits] of seen.entries()) digits.add((id as string).charAt(10 + place));
    }
    expect(seen.map((digits) => digits.size)).toEqual(Array.from({ length: 16 }, () => 32));
  });
});
