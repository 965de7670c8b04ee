/**
 * Table at the end of the whole suite. It has a row for each ratio with a bar, then for the other comparisons of ours. A
 * benchmark without bars has a row for each of its ratios, and a failed benchmark has one row. It is printed on the
 * terminal, and written into `benchmarks/README.md` by `npm run docs` from the newest suite that was kept.
 */
import { describeBar, judge, type Bars } from './bars.ts';
import type { PublishedReport, Surroundings } from './report.ts';

/** Outcome of one benchmark of the suite. */
export interface SuiteRun {
  readonly name: string;
  readonly arguments: readonly string[];
  readonly seconds: number;
  readonly bars: Bars;
  /** Absent if it failed. */
  readonly report?: PublishedReport;
  /** Its last words. */
  readonly failure?: string;
}

/** `results/<date>-<commit>-suite.json`. */
export interface SuiteResult extends Surroundings {
  readonly bench: 'suite';
  readonly versions: Record<string, string>;
  readonly seconds: number;
  readonly runs: readonly SuiteRun[];
}

interface Row {
  readonly name: string;
  readonly ratio: string;
  readonly measured: string;
  readonly bar: string;
  readonly verdict: string;
  readonly seconds: string;
}

const HEADINGS: Row = {
  name: 'benchmark',
  ratio: 'ratio',
  measured: 'measured',
  bar: 'bar',
  verdict: '',
  seconds: 'seconds',
};
const NUMBER_COLUMNS: ReadonlySet<keyof Row> = new Set(['measured', 'seconds']);
const COLUMNS = Object.keys(HEADINGS) as (keyof Row)[];

export function suiteRows(runs: readonly SuiteRun[]): Row[] {
  return runs.flatMap(({ name, seconds, bars, report, failure }) => {
    const first = { name, seconds: seconds.toFixed(0) };
    if (!report)
      return [
        { ...first, ratio: failure ?? 'no result', measured: '', bar: '', verdict: 'FAILED' },
      ];
    const barred = Object.keys(bars);
    const others = Object.keys(report.ratios).filter((ratio) => !(ratio in bars));
    const shown = [
      ...barred,
      ...others.filter((ratio) => barred.length === 0 || ratio.startsWith('ours/')),
    ];
    return shown.map((ratio, place) => {
      const measured = report.ratios[ratio];
      const bar = bars[ratio];
      return {
        ...(place === 0 ? first : { name: '', seconds: '' }),
        ratio,
        measured: isMeasured(measured) ? toText(measured) : '',
        bar: bar ? describeBar(bar) : '',
        verdict: isMeasured(measured) ? (bar ? judge(measured, bar) : '') : 'not measured',
      };
    });
  });
}

/** Three significant digits. A value too close to 0 for a run to measure is 0, and not `-0.0000856`. */
const toText = (ratio: number): string =>
  Math.abs(ratio) < 0.0005 ? '0' : String(Number(ratio.toPrecision(3)));

/** JSON has no NaN: an impossible division is null in a kept report. */
const isMeasured = (ratio: number | null | undefined): ratio is number =>
  typeof ratio === 'number' && Number.isFinite(ratio);

/** For a terminal: columns as wide as their content. */
export function terminalTable(runs: readonly SuiteRun[]): string {
  const rows = [HEADINGS, ...suiteRows(runs)];
  const widths = COLUMNS.map((column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) =>
      COLUMNS.map((column, place) =>
        NUMBER_COLUMNS.has(column)
          ? row[column].padStart(widths[place] as number)
          : row[column].padEnd(widths[place] as number),
      )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** For `benchmarks/README.md`: date, commit and machine, then the table. Names of ratios are code. */
export function markdownTable(suite: SuiteResult | undefined): string {
  if (!suite) return 'No run of the whole suite is kept in `benchmarks/results/`.';
  const { machine, versions } = suite;
  const line = (row: Row): string =>
    `| ${COLUMNS.map((column) => row[column].replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    `${suite.at.slice(0, 10)}, commit ${suite.commit}: ${machine.cores} × ${machine.cpu}, ${machine.memory_gb} GB, ` +
      `${Object.entries(versions)
        .map(([name, version]) => `${name} ${version}`)
        .join(
          ', ',
        )}. It took ${Math.round(suite.seconds / 60)} minutes, each benchmark in its short form.`,
    '',
    line(HEADINGS),
    `|${COLUMNS.map((column) => (NUMBER_COLUMNS.has(column) ? '---:' : '---')).join('|')}|`,
    ...suiteRows(suite.runs).map((row) =>
      line(row.verdict === 'FAILED' ? row : { ...row, ratio: `\`${row.ratio}\`` }),
    ),
  ].join('\n');
}

/** The one that was measured last, independent of its file's name. */
export const newestSuite = (suites: readonly SuiteResult[]): SuiteResult | undefined =>
  suites.toSorted((one, other) => one.at.localeCompare(other.at)).at(-1);
