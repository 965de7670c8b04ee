import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  bucketsOf,
  countBuckets,
  GRANULARITIES,
  summarizeUsage,
  type UsageSums,
} from '../../src/billing/usage-summary.ts';
import { addDays } from '../../src/values/utc-day.ts';

test('weeks begin on Monday, and the first and the last are cut to the range', () => {
  expect(bucketsOf({ start: '2026-02-25', end: '2026-03-10' }, 'week')).toEqual([
    { start: '2026-02-25', end: '2026-03-01' },
    { start: '2026-03-02', end: '2026-03-08' },
    { start: '2026-03-09', end: '2026-03-10' },
  ]);
  expect(bucketsOf({ start: '2028-01-31', end: '2028-03-01' }, 'month')).toEqual([
    { start: '2028-01-31', end: '2028-01-31' },
    { start: '2028-02-01', end: '2028-02-29' },
    { start: '2028-03-01', end: '2028-03-01' },
  ]);
});

test('buckets follow one another without a gap, cover the range, and are as many as were counted', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 40_000 }),
      fc.integer({ min: 0, max: 1_500 }),
      fc.constantFrom(...GRANULARITIES),
      (first, length, granularity) => {
        const start = addDays('1970-01-01', first);
        const end = addDays(start, length);
        const buckets = bucketsOf({ start, end }, granularity);
        expect(buckets).toHaveLength(countBuckets({ start, end }, granularity));
        expect([buckets[0]?.start, buckets.at(-1)?.end]).toEqual([start, end]);
        for (const [index, bucket] of buckets.entries()) {
          expect(bucket.start <= bucket.end).toBe(true);
          if (index > 0) expect(bucket.start).toBe(addDays(buckets[index - 1]?.end ?? '', 1));
        }
      },
    ),
  );
});

test('totals are the sum of the series and of the groups, and a group is the sum of its own', () => {
  const amount = fc.integer({ min: 0, max: 1_000 });
  const cells = fc.uniqueArray(
    fc.record({
      bucket: fc.integer({ min: 0, max: 5 }),
      group: fc.option(fc.integer({ min: 1, max: 4 })),
      runs: amount,
      used: amount,
      refunded: amount,
    }),
    { selector: (cell) => `${cell.bucket} ${cell.group}` },
  );
  const sum = (list: readonly UsageSums[]) =>
    list.reduce<UsageSums>(
      (total, each) => ({
        runs: total.runs + each.runs,
        used: total.used + each.used,
        refunded: total.refunded + each.refunded,
      }),
      { runs: 0, used: 0, refunded: 0 },
    );
  const plain = ({ runs: workflows, used, refunded }: UsageSums) => ({
    runs: workflows,
    used,
    refunded,
  });
  fc.assert(
    fc.property(cells, (given) => {
      const { totals, series, groups } = summarizeUsage(given, 6);
      expect(series).toHaveLength(6);
      expect(totals).toEqual(sum(given));
      expect(sum(series)).toEqual(totals);
      expect(sum(groups)).toEqual(totals);
      for (const group of groups) expect(sum(group.series)).toEqual(plain(group));
      expect(groups.map((group) => group.used)).toEqual(
        groups.map((group) => group.used).toSorted((one, other) => other - one),
      );
    }),
  );
});

test('without usage the totals and every bucket are zero', () => {
  const nothing = { runs: 0, used: 0, refunded: 0 };
  expect(summarizeUsage([], 3)).toEqual({
    totals: nothing,
    series: [nothing, nothing, nothing],
    groups: [],
  });
});
