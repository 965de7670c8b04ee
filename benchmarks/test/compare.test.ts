import { describe, expect, it } from 'vitest';
import { takeFlag, takeOption } from '../src/command-flags.ts';
import { compareReports, describeComparisons } from '../src/compare-statistics.ts';
import { reasonOf } from '../src/compare.ts';
import type { PublishedReport } from '../src/report.ts';
import { failureIn } from '../src/run-benchmark.ts';

const reportOf = (rate: number, more: Record<string, number> = {}): PublishedReport => ({
  bench: 'deliver',
  ratios: {},
  rates: { ours: rate, ...more },
  latency_ms: { p99: 1_000 / rate },
  versions: {},
  machine: { cpu: 'CPU', cores: 2, memory_gb: 8 },
  commit: 'abc',
  at: '2026-11-21T10:00:00.000Z',
});

describe('two revisions that ran alternately', () => {
  it('are compared pair by pair, so that a machine that slows down does not decide', () => {
    const comparisons = compareReports([
      { old: reportOf(1_000), new: reportOf(2_000) },
      { old: reportOf(100), new: reportOf(200) },
    ]);
    expect(comparisons.map(({ name, ratio }) => [name, ratio.toFixed(6)])).toEqual([
      ['rates: ours', '2.000000'],
      ['ms: p99', '0.500000'],
    ]);
  });

  it('report the distance of their pairs, and a doubling and a halving are no change', () => {
    const [rate] = compareReports([
      { old: reportOf(100), new: reportOf(200) },
      { old: reportOf(100), new: reportOf(50) },
    ]);
    expect(rate?.ratio).toBeCloseTo(1, 12);
    expect([rate?.least, rate?.most]).toEqual([0.5, 2]);
    expect(describeComparisons(rate ? [rate] : [])).toBe('rates: ours  1.000  (0.500 to 2.000)');
  });

  it('leave out numbers that only one of them measured, and old numbers of 0', () => {
    const names = compareReports([
      { old: reportOf(100, { gone: 1, zero: 0 }), new: reportOf(100, { added: 1, zero: 5 }) },
    ]).map(({ name }) => name);
    expect(names).toEqual(['rates: ours', 'ms: p99']);
  });

  it('name an option that the older code does not have', () => {
    const errors = `node:internal/util/parse_args/utils:59
TypeError [ERR_PARSE_ARGS_UNKNOWN_OPTION]: Unknown option '--keep'. To specify a positional argument
    at checkOptionUsage (node:internal/util:1:1)

Node.js v22.23.3
`;
    const failure = failureIn(errors) ?? '';
    expect(reasonOf(failure, 'old', 'HEAD~9')).toBe(
      'the benchmark code of HEAD~9 does not know --keep; leave it out',
    );
    expect(reasonOf('Error: no room', 'new', 'HEAD~9')).toBe('new failed: Error: no room');
  });
});

describe('the flags of npm run bench', () => {
  it('are taken out of the arguments of the benchmark', () => {
    const arguments_ = ['deliver', '--short', '--compare', 'main', '--rounds', '1', '--times=3'];
    expect(takeFlag(arguments_, '--short')).toBe(true);
    expect(takeFlag(arguments_, '--short')).toBe(false);
    expect(takeOption(arguments_, '--compare')).toBe('main');
    expect(takeOption(arguments_, '--times')).toBe('3');
    expect(takeOption(arguments_, '--keep')).toBeUndefined();
    expect(arguments_).toEqual(['deliver', '--rounds', '1']);
  });

  it('want their values', () => {
    expect(() => takeOption(['--compare'], '--compare')).toThrow('--compare wants a value');
    expect(() => takeOption(['--compare', '--short'], '--compare')).toThrow('wants a value');
  });
});
