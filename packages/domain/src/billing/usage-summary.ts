/**
 * Sums usage of inbox previews by period, and by workspace or user. Periods are days, weeks or months.
 *
 * The database adds up by bucket and group (`database/src/credits/inbox-preview-usage-reads.ts`). Totals and series are
 * made from those sums, so they agree on every field by construction:
 *
 *     totals = sum of series = sum of groups,   each group = sum of its own series
 *
 * Every bucket of the range is there, also one without usage; the first and the last are cut to the range.
 */
import {
  addDays,
  daysBetween,
  firstOfMonth,
  mondayOf,
  type DayRange,
  type UtcDay,
} from '../values/utc-day.ts';

export const GRANULARITIES = ['day', 'week', 'month'] as const;
export type Granularity = (typeof GRANULARITIES)[number];

export interface Bucket {
  readonly start: UtcDay;
  /** Included. */
  readonly end: UtcDay;
}

/** How many buckets a range has, without making them. */
export function countBuckets({ start, end }: DayRange, granularity: Granularity): number {
  switch (granularity) {
    case 'day':
      return daysBetween(start, end) + 1;
    case 'week':
      return daysBetween(mondayOf(start), mondayOf(end)) / 7 + 1;
    case 'month': {
      const monthOf = (day: UtcDay) => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7));
      return monthOf(end) - monthOf(start) + 1;
    }
  }
}

/** In order; weeks begin on Monday (ISO 8601). */
export function bucketsOf(range: DayRange, granularity: Granularity): Bucket[] {
  const nextOf = {
    day: (day: UtcDay) => addDays(day, 1),
    week: (day: UtcDay) => addDays(mondayOf(day), 7),
    month: (day: UtcDay) => firstOfMonth(day, 1),
  }[granularity];
  const buckets: Bucket[] = [];
  for (let start = range.start; start <= range.end;) {
    const next = nextOf(start);
    const last = addDays(next, -1);
    buckets.push({ start, end: last < range.end ? last : range.end });
    start = next;
  }
  return buckets;
}

export interface UsageSums {
  readonly runs: number;
  readonly used: number;
  readonly refunded: number;
}

/** Usage of one group in one bucket. */
export interface UsageCell extends UsageSums {
  /** From 0, in the order of {@link bucketsOf}. */
  readonly bucket: number;
  /** A workspace or a user. Null for usage without a user, and for all usage if it is not grouped. */
  readonly group: number | null;
}

export interface UsageGroup extends UsageSums {
  readonly key: number | null;
  /** One a bucket. */
  readonly series: readonly UsageSums[];
}

export interface UsageSummary {
  readonly totals: UsageSums;
  /** One a bucket. */
  readonly series: readonly UsageSums[];
  /** In order of use, the greatest first. */
  readonly groups: readonly UsageGroup[];
}

const NOTHING: UsageSums = { runs: 0, used: 0, refunded: 0 };

const add = (one: UsageSums, other: UsageSums): UsageSums => ({
  runs: one.runs + other.runs,
  used: one.used + other.used,
  refunded: one.refunded + other.refunded,
});

/** @param cells - at most one a bucket and group. */
export function summarizeUsage(cells: readonly UsageCell[], bucketCount: number): UsageSummary {
  const emptySeries = (): UsageSums[] => Array.from({ length: bucketCount }, () => NOTHING);
  const series = emptySeries();
  const seriesOf = new Map<number | null, UsageSums[]>();
  for (const cell of cells) {
    const own = seriesOf.get(cell.group) ?? emptySeries();
    seriesOf.set(cell.group, own);
    for (const each of [series, own]) each[cell.bucket] = add(each[cell.bucket] ?? NOTHING, cell);
  }
  const groups = [...seriesOf].map(([key, own]) => ({ key, series: own, ...own.reduce(add) }));
  return {
    totals: series.reduce(add, NOTHING),
    series,
    groups: groups.toSorted(
      (one, other) => other.used - one.used || (one.key ?? 0) - (other.key ?? 0),
    ),
  };
}
