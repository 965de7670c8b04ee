/**
 * `npm run mutate -- FILE…`: changes a file in many small ways, one at a time, and runs the tests nearest to it on each.
 * A change that no test notices survives: it is printed as a diff, and the command ends with 1.
 *
 *     npm run mutate -- credit-ledger                    # every mutant of the file
 *     npm run mutate -- lane-lease --count 30 --seed 7   # 30 of them, the same for the same seed
 *     npm run mutate -- credits --line 272               # mutants that begin in one line
 *     npm run mutate -- --all --seed 7                   # 30 of each guarded file, all of the pure ones, in an hour, two files at once
 *
 * No file of the checkout is written (`mutation/active-mutant.mjs`); `mutation/mutants.ts` makes the mutants. Equivalent
 * ones are in `mutation/equivalent-mutants.json` with the reason, and are not run. Stryker changes no condition of an `sql`
 * template, to it one string, and most rules of `database` are there. This runner changes the text that Vitest or Node is
 * about to load, in the processes that tests start too. It uses knip's parser.
 */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { readImportGraph } from './import-graph.ts';
import {
  changedLines,
  isKeptAsEquivalent,
  readEquivalentMutants,
} from './mutation/equivalent-mutants.ts';
import { GUARDED_FILES } from './mutation/guarded-files.ts';
import { openMutantRuns, type MutantRuns } from './mutation/mutant-runs.ts';
import { mutantsOf, mutate, type Mutant } from './mutation/mutants.ts';
import { nearestTests } from './mutation/nearest-tests.ts';
import { commitOf, tableOf, type FileRun } from './mutation/run-table.ts';
import { runAllFiles, runGivenFiles, runInProcesses } from './mutation/shared-files.ts';

const USAGE = `usage: npm run mutate -- [FILE…] [--all] [--count N] [--seed N] [--minutes N] [--at-once N] [--line N] [--tests FILE]… [--tests-max N] [--list]
FILE is a path, or the end of one that only one file has, as credit-ledger
--all takes the files of scripts/mutation/guarded-files.ts, 30 mutants of each impure one, for 60 minutes at most, two files at once`;
/** Of `--all`. One file leaves half of two cores idle: many tests wait. */
const ALL = { count: 30, minutes: 60, atOnce: 2 };

/** Beyond this a test's own limits have not ended it. */
const TIMEOUT = { baseMs: 60_000, factor: 4 };
/** Tests that run on each mutant, the two that killed most first. */
const FIRST_COUNT = 2;

const { values, positionals } = readCommandLine();
const root = fileURLToPath(new URL(values.in ?? '..', import.meta.url)).replace(/\/$/, '');
const config = join(
  root,
  values.in === undefined ? 'scripts/mutation/vitest.config.ts' : 'vitest.config.ts',
);
const equivalentMutants = readEquivalentMutants(
  new URL('mutation/equivalent-mutants.json', import.meta.url),
);
const graph = readImportGraph(root, values.in === undefined ? ['packages', 'scripts'] : ['.']).map(
  ({ path, imports }) => ({ path: path.replace(/^\.\//, ''), imports }),
);
const wanted = values.all
  ? GUARDED_FILES.map(({ path, isWhole }) => ({
      path: findFile(path),
      count: isWhole ? undefined : Number(values.count ?? ALL.count),
    }))
  : positionals.map((name) => ({
      path: findFile(name),
      count: values.count === undefined ? undefined : Number(values.count),
    }));
const minutesMax = Number(values.minutes ?? (values.all ? ALL.minutes : Infinity));
const endsAtMs = performance.now() + minutesMax * 60_000;
// Found by their own names: no file of a run may start a second one.
process.env['CI'] ??= '1';
const atOnce = Math.min(Number(values['at-once'] ?? (values.all ? ALL.atOnce : 1)), wanted.length);
const files = atOnce > 1 && !values.list && !values.given ? await runShared() : await runHere();
if (!values.list && !values.given)
  console.log(tableOf(files, { seed: values.seed, commit: commitOf(root) }));
process.exit(files.some(({ survivedCount }) => survivedCount > 0) ? 1 : 0);

function runShared(): Promise<FileRun[]> {
  return runInProcesses(new URL(import.meta.url), ['--given', ...process.argv.slice(2)], {
    fileCount: wanted.length,
    processCount: atOnce,
  });
}

async function runHere(): Promise<FileRun[]> {
  const runs = values.list ? undefined : await openMutantRuns(root, config);
  const runFile = async (index: number): Promise<FileRun | undefined> => {
    const { path, count } = wanted[index] as (typeof wanted)[number];
    if (performance.now() <= endsAtMs) return mutateFile(path, count, runs);
    console.log(`${path}: not run, the time is over`);
    return undefined;
  };
  try {
    return await (values.given ? runGivenFiles : runAllFiles)(runFile, wanted.length);
  } finally {
    await runs?.close();
  }
}

function readCommandLine() {
  try {
    const parsed = parseArgs({
      allowPositionals: true,
      options: {
        all: { type: 'boolean', default: false },
        count: { type: 'string' },
        minutes: { type: 'string' },
        'at-once': { type: 'string' },
        seed: { type: 'string', default: '1' },
        line: { type: 'string', multiple: true },
        tests: { type: 'string', multiple: true },
        'tests-max': { type: 'string', default: '8' },
        list: { type: 'boolean', default: false },
        in: { type: 'string' },
        given: { type: 'boolean', default: false },
      },
    });
    if (parsed.positionals.length > 0 !== parsed.values.all) return parsed;
    console.error(USAGE);
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`);
  }
  return process.exit(2);
}

function findFile(name: string): string {
  const ends = [name, `/${name}`, `/${name}.ts`, `${name}.ts`];
  const isTest = (path: string): boolean => /(^|\/)test\//.test(path);
  const found = graph.filter(
    ({ path }) =>
      path === name ||
      (!isTest(path) &&
        ends.some((end) => path === end || (end.startsWith('/') && path.endsWith(end)))),
  );
  const [file] = found;
  if (file && found.length === 1) return file.path;
  console.error(
    file
      ? `${name} may be ${found.map(({ path }) => path).join(' or ')}`
      : `there is no file ${name}`,
  );
  return process.exit(2);
}

/** @param count - of mutants to choose. Undefined: all. */
async function mutateFile(
  path: string,
  count: number | undefined,
  mutantRuns: MutantRuns | undefined,
): Promise<FileRun> {
  const text = readFileSync(join(root, path), 'utf8');
  const equivalents = equivalentMutants.filter(({ file }) => file === path);
  const all = mutantsOf(path, text);
  const chosen = choose(all, text, count);
  const mutants = chosen.filter(
    (mutant) => !isKeptAsEquivalent(changedLines(text, mutant), text, equivalents),
  );
  const tests = testsOf(path);
  console.log(`${path}: ${mutants.length} mutants, ${tests.join(' ')}`);
  const outcome = {
    path,
    mutantCount: all.length,
    equivalentCount: chosen.length - mutants.length,
  };
  if (!mutantRuns) {
    for (const mutant of mutants) console.log(describe(path, text, mutant));
    return { ...outcome, triedCount: 0, killedCount: 0, survivedCount: 0 };
  }
  const startedAtMs = performance.now();
  const usual = await mutantRuns.run(undefined, tests.map(absolute), TIMEOUT.baseMs * 10);
  if (usual.outcome !== 'passed')
    throw new Error(`the tests fail without a mutant: ${usual.failed?.path} ${usual.failed?.test}`);
  const timeoutMs = TIMEOUT.baseMs + TIMEOUT.factor * usual.durationMs;
  const killCounts = new Map(tests.map((test) => [test, 0]));
  let tried = 0;
  let survivors = 0;
  for (const mutant of mutants) {
    if (performance.now() > endsAtMs) break;
    tried++;
    const killer = await killerOf(mutantRuns, path, mutate(text, mutant), killCounts, timeoutMs);
    if (killer === undefined) {
      survivors++;
      console.log(`survived  ${describe(path, text, mutant)}`);
    } else if (values.line) console.log(`killed    ${describe(path, text, mutant)}  by ${killer}`);
  }
  const seconds = Math.round((performance.now() - startedAtMs) / 1000);
  console.log(
    `${path}: ${tried - survivors} killed, ${survivors} survived, ${outcome.equivalentCount} equivalent, ${seconds} s`,
  );
  return {
    ...outcome,
    triedCount: tried,
    killedCount: tried - survivors,
    survivedCount: survivors,
  };
}

/** In the order of the text; with a count as many as that, by the seed. */
function choose(mutants: readonly Mutant[], text: string, count: number | undefined): Mutant[] {
  const lines = values.line?.map(Number);
  const possible = lines
    ? mutants.filter((mutant) => lines.includes(changedLines(text, mutant).line))
    : mutants;
  const random = seededRandom(Number(values.seed));
  const drawn = possible.map((mutant) => ({ mutant, place: random() }));
  return drawn
    .toSorted((one, other) => one.place - other.place)
    .slice(0, count)
    .map(({ mutant }) => mutant)
    .toSorted((one, other) => one.start - other.start);
}

function testsOf(path: string): string[] {
  if (values.tests) return values.tests.map((name) => relative(root, join(process.cwd(), name)));
  const near = nearestTests(graph, path).slice(0, Number(values['tests-max']));
  if (near.length === 0) throw new Error(`no test imports ${path}`);
  return near.map((test) => test.path);
}

/** @returns the test that noticed. Undefined: no test did. */
async function killerOf(
  mutantRuns: MutantRuns,
  path: string,
  text: string,
  killCounts: Map<string, number>,
  timeoutMs: number,
): Promise<string | undefined> {
  const byKills = [...killCounts.keys()].toSorted(
    (one, other) => (killCounts.get(other) ?? 0) - (killCounts.get(one) ?? 0),
  );
  for (const part of [byKills.slice(0, FIRST_COUNT), byKills.slice(FIRST_COUNT)]) {
    if (part.length === 0) continue;
    const mutated = { path: absolute(path), text };
    const { outcome, failed } = await mutantRuns.run(mutated, part.map(absolute), timeoutMs);
    if (outcome === 'passed') continue;
    const killer = failed && relative(root, failed.path);
    if (killer !== undefined) killCounts.set(killer, (killCounts.get(killer) ?? 0) + 1);
    return outcome === 'timed-out'
      ? 'its time'
      : `${killer ?? 'an error outside the tests'}: ${failed?.test ?? ''}`;
  }
  return undefined;
}

function absolute(path: string): string {
  return join(root, path);
}

function describe(path: string, text: string, mutant: Mutant): string {
  const { line, from, to } = changedLines(text, mutant);
  const mark = (lines: string, sign: string) =>
    lines
      .split('\n')
      .map((each) => `    ${sign} ${each.trim()}`)
      .join('\n');
  return `${path}:${line} ${mutant.kind}\n${mark(from, '-')}\n${mark(to, '+')}`;
}
