/**
 * Runs test files on one mutant after another, in one Vitest.
 *
 * It starts Postgres and Redis once. Only the module of the mutant is transformed anew; every test file runs in a
 * process of its own.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createVitest, type TestSpecification, type Vitest } from 'vitest/node';

export interface RunResult {
  readonly outcome: 'passed' | 'failed' | 'timed-out';
  /** The test file that failed, and the name of its first failed test, as far as they are known. */
  readonly failed: { readonly path: string; readonly test: string } | undefined;
  readonly durationMs: number;
}

export interface MutantRuns {
  /**
   * @param mutated - the file's path and its text with a mutant. Undefined: the tests run on the code as it is.
   * @param testPaths - absolute.
   * @param timeoutMs - after which the run is cancelled.
   */
  run(
    mutated: { readonly path: string; readonly text: string } | undefined,
    testPaths: readonly string[],
    timeoutMs: number,
  ): Promise<RunResult>;
  close(): Promise<void>;
}

/** @param config - of Vitest: the project's for mutants, or a sample's. */
export async function openMutantRuns(root: string, config: string): Promise<MutantRuns> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-mutant-'));
  const mutantFile = join(folder, 'mutant');
  const hook = fileURLToPath(new URL('load-mutant.mjs', import.meta.url));
  const nodeOptions = `--disable-warning=ExperimentalWarning --import=${hook}`;
  const vitest = await createVitest({ root, config, watch: false, reporters: [{}] });
  await vitest.standalone();
  process.env['NODE_OPTIONS'] = nodeOptions;
  let mutatedBefore: string | undefined;
  /** Tests of each file, on the code as it is. */
  const usualCounts = new Map<string, TestCounts>();
  // A mutant may take cases from a table of tests: then all tests of the shorter file have run.
  const isCut = ({ outcome, counts }: RunOfTests, testPaths: readonly string[]): boolean =>
    ['passed', 'not-run'].includes(outcome) &&
    testPaths.some((path) => {
      const usual = usualCounts.get(path) ?? NO_TESTS;
      const { passed, unrun } = counts.get(path) ?? NO_TESTS;
      return passed < usual.passed && (passed === 0 || unrun > usual.unrun);
    });

  return {
    async run(mutated, testPaths, timeoutMs) {
      if (mutated) {
        writeFileSync(
          mutantFile,
          `${JSON.stringify(mutated.path)}\n${JSON.stringify(mutated.text)}`,
        );
        process.env['MUTANT_FILE'] = mutantFile;
      } else delete process.env['MUTANT_FILE'];
      for (const path of new Set([mutatedBefore, mutated?.path]))
        if (path !== undefined) vitest.invalidateFile(path);
      mutatedBefore = mutated?.path;
      let result = await runTests(vitest, testPaths, timeoutMs);
      // The end of the mutant before may reach Vitest late, which then ends this run in its place.
      for (let tries = 1; isCut(result, testPaths) && tries < TRIES_MAX; tries++)
        result = await runTests(vitest, testPaths, timeoutMs);
      const { outcome, failed, durationMs, counts } = result;
      if (outcome === 'not-run' || isCut(result, testPaths))
        throw new Error(`tests did not run: ${testPaths.join(', ')}`);
      if (outcome !== 'passed') await dropKeptDatabases(vitest);
      if (!mutated) for (const [path, count] of counts) usualCounts.set(path, count);
      return { outcome, failed, durationMs };
    },
    async close() {
      await vitest.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Of a run that was cut before its tests. */
const TRIES_MAX = 5;
/** For a process to end by itself once its run is cancelled. */
const END_MS_MAX = 10_000;

interface TestCounts {
  readonly passed: number;
  /** Skipped ones among them. */
  readonly unrun: number;
}

const NO_TESTS: TestCounts = { passed: 0, unrun: 0 };

interface RunOfTests extends Omit<RunResult, 'outcome'> {
  readonly outcome: RunResult['outcome'] | 'not-run';
  readonly counts: ReadonlyMap<string, TestCounts>;
}

async function runTests(
  vitest: Vitest,
  testPaths: readonly string[],
  timeoutMs: number,
): Promise<RunOfTests> {
  // `bail` counts every failure that it finds there, also of the mutant before.
  vitest.state.idMap.clear();
  vitest.state.filesMap.clear();
  const wanted = new Set(testPaths);
  const specifications = (await vitest.globTestSpecifications([...testPaths])).filter(
    ({ moduleId }: TestSpecification) => wanted.has(moduleId),
  );
  if (specifications.length !== wanted.size)
    throw new Error(`no tests of this configuration: ${testPaths.join(', ')}`);
  const startedAtMs = performance.now();
  let isTimedOut = false;
  const cancel = (): Promise<void> => vitest.cancelCurrentRun('test-failure');
  // The first waits for the processes of the tests, the second ends them.
  const timers = [timeoutMs, timeoutMs + END_MS_MAX].map((afterMs) =>
    setTimeout(() => {
      isTimedOut = true;
      void cancel();
    }, afterMs),
  );
  const { testModules, unhandledErrors } = await vitest
    .runTestSpecifications(specifications)
    .finally(() => timers.forEach((timer) => clearTimeout(timer)));
  const durationMs = performance.now() - startedAtMs;
  // If a process is killed after a failed test, Vitest waits for its end for ever, and begins no further run. Another
  // cancellation waits for the other processes only.
  await cancel();
  const counts = new Map(
    testModules.map(({ moduleId, children }) => {
      const countOf = (state: 'passed' | 'skipped' | 'pending') =>
        [...children.allTests(state)].length;
      const unrun = countOf('skipped') + countOf('pending');
      return [moduleId, { passed: countOf('passed'), unrun }] as const;
    }),
  );
  const failed = testModules.find((each) => each.state() === 'failed');
  if (failed || unhandledErrors.length > 0) {
    const [test] = failed?.children.allTests('failed') ?? [];
    return {
      outcome: 'failed',
      failed: failed && { path: failed.moduleId, test: test?.fullName ?? 'the file itself' },
      durationMs,
      counts,
    };
  }
  // Skipped: whole files that this machine cannot run.
  const isWhole = testModules.every((each) => ['passed', 'skipped'].includes(each.state()));
  const outcome = isTimedOut ? 'timed-out' : isWhole ? 'passed' : 'not-run';
  return { outcome, failed: undefined, durationMs, counts };
}

/** Files that failed keep their databases for a person to look into; here each mutant would keep some. */
async function dropKeptDatabases(vitest: Vitest): Promise<void> {
  const { testServerUrl } = vitest.getRootProject().getProvidedContext();
  if (testServerUrl === undefined) return;
  const client = new pg.Client({ connectionString: testServerUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ datname: string }>(
      `select datname from pg_database where datname like 'test\\_%'`,
    );
    for (const { datname } of rows) await client.query(`drop database ${datname} with (force)`);
  } finally {
    await client.end();
  }
}
