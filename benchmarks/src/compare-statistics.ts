/** Compares two revisions that ran in turn: the ratio new/old of each number. */
import type { PublishedReport } from './report.ts';

/** One old and one new run, next to each other in time. */
export interface Pair {
  readonly old: PublishedReport;
  readonly new: PublishedReport;
}

export interface Comparison {
  /** `rates: ours, 1 webhook` */
  readonly name: string;
  /** Geometric mean over the pairs, of new/old. */
  readonly ratio: number;
  readonly least: number;
  readonly most: number;
}

/** Leaves out numbers that only one of the two has, and numbers that were 0 in the old one. */
export function compareReports(pairs: readonly Pair[]): Comparison[] {
  const numbers = pairs.map((pair) => ({ old: numbersOf(pair.old), new: numbersOf(pair.new) }));
  const names = new Set(numbers.flatMap((pair) => Object.keys(pair.new)));
  return [...names].flatMap((name) => {
    const ratios = numbers.map((pair) => (pair.new[name] ?? NaN) / (pair.old[name] ?? NaN));
    if (!ratios.every((ratio) => ratio > 0 && Number.isFinite(ratio))) return [];
    const meanLog = ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length;
    return [
      {
        name,
        ratio: Math.exp(meanLog),
        least: Math.min(...ratios),
        most: Math.max(...ratios),
      },
    ];
  });
}

function numbersOf(report: PublishedReport): Record<string, number> {
  const groups = { ratios: report.ratios, rates: report.rates, ms: report.latency_ms };
  return Object.fromEntries(
    Object.entries(groups).flatMap(([group, values]) =>
      Object.entries(values).map(([name, value]) => [`${group}: ${name}`, value]),
    ),
  );
}

/** A line each: the mean, and between which two ratios it lies. */
export function describeComparisons(comparisons: readonly Comparison[]): string {
  const width = Math.max(0, ...comparisons.map(({ name }) => name.length));
  return comparisons
    .map(
      ({ name, ratio, least, most }) =>
        `${name.padEnd(width)}  ${ratio.toFixed(3)}  (${least.toFixed(3)} to ${most.toFixed(3)})`,
    )
    .join('\n');
}
