/** The whole suite: every benchmark in its short form, one after another, and one table at the end. */
import { join } from 'node:path';
import type { Benchmark } from './catalogue.ts';
import { keepResult, readSurroundings } from './report.ts';
import { runBenchmark } from './run-benchmark.ts';
import { terminalTable, type SuiteResult, type SuiteRun } from './suite-table.ts';

const CHECKOUT = join(import.meta.dirname, '../..');

/**
 * Runs them all, prints the table, keeps the result. @returns true if all ran to their end; a missed bar is no
 * failure.
 */
export async function runSuite(catalogue: Readonly<Record<string, Benchmark>>): Promise<boolean> {
  const startedAtMs = performance.now();
  const surroundings = await readSurroundings();
  const runs: SuiteRun[] = [];
  const benchmarks = Object.entries(catalogue).filter(([, { isApart }]) => isApart !== true);
  for (const [place, [name, { about, bars, short }]] of benchmarks.entries()) {
    const minutes = ((performance.now() - startedAtMs) / 60_000).toFixed(1);
    console.log(`\n[${place + 1}/${benchmarks.length}, ${minutes} min] ${name}: ${about}`);
    // For readers of the log of an unattended run, as of every command that takes long.
    if (!process.stderr.isTTY)
      console.error(
        JSON.stringify({
          progress: 'measuring',
          state: 'runs',
          unit: 'benchmarks',
          done: place,
          all: benchmarks.length,
          elapsed_ms: Math.round(performance.now() - startedAtMs),
        }),
      );
    const ended = await runBenchmark(CHECKOUT, [name, ...short, '--no-file'], (line) =>
      console.log(`  ${line}`),
    );
    if (ended.outcome === 'failed') console.log(`  FAILED: ${ended.failure}`);
    runs.push({
      name,
      arguments: short,
      seconds: Math.round(ended.seconds),
      bars,
      ...(ended.outcome === 'measured' ? { report: ended.report } : { failure: ended.failure }),
    });
  }
  const suite: SuiteResult = {
    bench: 'suite',
    ...surroundings,
    versions: Object.assign({}, ...runs.map(({ report }) => report?.versions)) as Record<
      string,
      string
    >,
    seconds: Math.round((performance.now() - startedAtMs) / 1_000),
    runs,
  };
  console.log(`\n${terminalTable(runs)}`);
  console.log(
    `\n${await keepResult(suite)}\n"npm run docs" writes the table into benchmarks/README.md.`,
  );
  return runs.every(({ report }) => report);
}
