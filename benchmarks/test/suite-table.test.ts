import { describe, expect, it } from 'vitest';
import { judge } from '../src/bars.ts';
import {
  markdownTable,
  newestSuite,
  suiteRows,
  terminalTable,
  type SuiteResult,
  type SuiteRun,
} from '../src/suite-table.ts';

const surroundings = {
  machine: { cpu: 'CPU', cores: 2, memory_gb: 8 },
  commit: 'abc1234',
  at: '2026-11-21T10:00:00.000Z',
};

const runOf = (
  name: string,
  ratios: Record<string, number>,
  bars: SuiteRun['bars'] = {},
): SuiteRun => ({
  name,
  arguments: [],
  seconds: 12.4,
  bars,
  report: { bench: name, ratios, rates: {}, latency_ms: {}, versions: {}, ...surroundings },
});

const suiteOf = (at: string, runs: readonly SuiteRun[]): SuiteResult => ({
  bench: 'suite',
  ...surroundings,
  at,
  versions: { node: 'v22' },
  seconds: 590,
  runs,
});

describe('the table of the suite', () => {
  it('meets a bar at its bound, in both directions', () => {
    expect(judge(0.65, { atLeast: 0.65 })).toBe('met');
    expect(judge(0.649, { atLeast: 0.65 })).toBe('missed');
    expect(judge(1.3, { atMost: 1.3 })).toBe('met');
    expect(judge(1.31, { atMost: 1.3 })).toBe('missed');
  });

  it('has a row for each ratio with a bar, and the time once a benchmark', () => {
    const rows = suiteRows([
      runOf('intake', { a: 0.70001, b: 4, beside: 9 }, { a: { atLeast: 0.65 }, b: { atMost: 3 } }),
    ]);
    expect(rows).toEqual([
      { name: 'intake', ratio: 'a', measured: '0.7', bar: '≥ 0.65', verdict: 'met', seconds: '12' },
      { name: '', ratio: 'b', measured: '4', bar: '≤ 3', verdict: 'missed', seconds: '' },
    ]);
  });

  it('shows other comparisons of ours, without a bar, after the ones with a bar', () => {
    const ratios = { 'ours/bullmq': 4, 'ours/floor': 0.7, 'worst/best': 2 };
    const rows = suiteRows([runOf('intake', ratios, { 'ours/floor': { atLeast: 0.65 } })]);
    expect(rows.map(({ ratio, verdict }) => [ratio, verdict])).toEqual([
      ['ours/floor', 'met'],
      ['ours/bullmq', ''],
    ]);
  });

  it('gives three digits, and 0 for a value too close to 0 for a run to measure', () => {
    const rows = suiteRows([runOf('memory', { a: 0.07456, b: 1234.5, c: -0.0000856, d: -0.12 })]);
    expect(rows.map(({ measured }) => measured)).toEqual(['0.0746', '1230', '0', '-0.12']);
  });

  it('shows every ratio of a benchmark without bars', () => {
    const rows = suiteRows([runOf('tail', { a: 1, b: 2 })]);
    expect(rows.map(({ ratio, bar, verdict }) => [ratio, bar, verdict])).toEqual([
      ['a', '', ''],
      ['b', '', ''],
    ]);
  });

  it('never calls a bar met whose ratio was not measured', () => {
    const bars = { gone: { atLeast: 1 }, empty: { atMost: 1 } };
    const kept = JSON.parse(JSON.stringify(runOf('deliver', { empty: NaN }, bars))) as SuiteRun;
    expect(suiteRows([kept]).map(({ verdict }) => verdict)).toEqual([
      'not measured',
      'not measured',
    ]);
  });

  it('keeps a benchmark that failed, with its last words', () => {
    const failed = { name: 'api', arguments: [], seconds: 3, bars: {}, failure: 'a | b' };
    expect(terminalTable([failed, runOf('tail', { a: 1 })]).split('\n')).toEqual([
      'benchmark  ratio  measured  bar          seconds',
      'api        a | b                 FAILED        3',
      'tail       a             1                    12',
    ]);
    expect(markdownTable(suiteOf(surroundings.at, [failed]))).toContain(
      '| api | a \\| b |  |  | FAILED | 3 |',
    );
  });

  it('has the date, the commit and the machine', () => {
    const [first] = markdownTable(suiteOf(surroundings.at, [])).split('\n');
    expect(first).toBe(
      '2026-11-21, commit abc1234: 2 × CPU, 8 GB, node v22. It took 10 minutes, each benchmark in its short form.',
    );
    expect(markdownTable(undefined)).toContain('No run');
  });

  it('is made of the suite that was measured last', () => {
    const suites = ['2026-11-21T10:00:00Z', '2026-12-01T09:00:00Z', '2026-11-30T23:00:00Z'].map(
      (at) => suiteOf(at, []),
    );
    expect(newestSuite(suites)?.at).toBe('2026-12-01T09:00:00Z');
    expect(newestSuite([])).toBeUndefined();
  });
});
