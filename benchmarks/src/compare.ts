/**
 * `--compare REV`: runs this checkout (new) and another revision (old), each with its own benchmark code
 * and services. The order is old new new old, so that a machine that gets slower or faster meanwhile
 * affects both alike. The old revision is in a git worktree in a temporary folder, removed at the end.
 */
import { execFile, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { compareReports, describeComparisons, type Pair } from './compare-statistics.ts';
import type { PublishedReport } from './report.ts';
import { runBenchmark } from './run-benchmark.ts';

const CHECKOUT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

export interface CompareOptions {
  readonly revision: string;
  /** How often old new new old. */
  readonly times: number;
  /** Benchmarks to run: names, and arguments of both sides. */
  readonly benchmarks: readonly { readonly name: string; readonly arguments: readonly string[] }[];
}

/**
 * @throws Error if the revision cannot be checked out. Benchmarks that it cannot run are printed and
 * left out.
 */
export async function compareRevisions(options: CompareOptions): Promise<boolean> {
  const { stdout } = await run('git', ['rev-parse', '--verify', `${options.revision}^{commit}`], {
    cwd: CHECKOUT,
  }).catch(() => {
    throw new Error(`${options.revision} is no revision of this repository`);
  });
  const commit = stdout.trim();
  const directory = await mkdtemp(join(tmpdir(), 'sluice-compare-'));
  await chmod(directory, 0o711);
  const checkout = join(directory, 'old');
  // At the end of the process, also after an interrupt.
  const remove = (): void => {
    const git = (...arguments_: string[]) =>
      spawnSync('git', ['worktree', ...arguments_], { cwd: CHECKOUT });
    git('remove', '--force', checkout);
    rmSync(directory, { recursive: true, force: true });
    git('prune');
  };
  process.once('exit', remove);
  console.log(`old is ${commit.slice(0, 9)} in ${checkout}, new is ${CHECKOUT} as it stands`);
  await run('git', ['worktree', 'add', '--detach', checkout, commit], { cwd: CHECKOUT });
  await installDependencies(checkout);
  let isComplete = true;
  for (const benchmark of options.benchmarks)
    isComplete = (await compareOne(checkout, benchmark, options)) && isComplete;
  return isComplete;
}

async function compareOne(
  checkout: string,
  { name, arguments: arguments_ }: CompareOptions['benchmarks'][number],
  { revision, times }: CompareOptions,
): Promise<boolean> {
  console.log(`\n${name} ${arguments_.join(' ')}`);
  if (!(await knows(checkout, name))) {
    console.log(`${revision} has no benchmark "${name}"`);
    return false;
  }
  const sides = {
    old: { checkout, arguments: [name, ...arguments_] },
    new: { checkout: CHECKOUT, arguments: [name, ...arguments_, '--no-file'] },
  };
  const pairs: Pair[] = [];
  for (let time = 0; time < times; time++) {
    for (const order of [['old', 'new'] as const, ['new', 'old'] as const]) {
      const pair: Partial<Record<'old' | 'new', PublishedReport>> = {};
      for (const side of order) {
        const ended = await runBenchmark(sides[side].checkout, sides[side].arguments, (line) =>
          console.log(`  ${side}  ${line}`),
        );
        if (ended.outcome === 'failed') {
          console.log(`${name} cannot be compared: ${reasonOf(ended.failure, side, revision)}`);
          return false;
        }
        pair[side] = ended.report;
      }
      pairs.push(pair as Pair);
    }
  }
  const comparisons = compareReports(pairs);
  console.log(`\n${name}, new/old, mean of ${pairs.length} pairs (least to most):`);
  console.log(describeComparisons(comparisons));
  console.log(
    JSON.stringify({
      compare: name,
      old: pairs[0]?.old.commit,
      new: pairs[0]?.new.commit,
      ratios: Object.fromEntries(
        comparisons.map(({ name: number, ratio, least, most }) => [number, { ratio, least, most }]),
      ),
    }),
  );
  return true;
}

/** Also of a revision whose `main.ts` only lists. */
/** @throws Error of `run` if the old benchmarks do not start. */
async function knows(checkout: string, name: string): Promise<boolean> {
  const { stdout } = await run(
    process.execPath,
    [join(checkout, 'benchmarks/src/main.ts'), '--help'],
    { cwd: checkout },
  );
  return stdout.split('\n').some((line) => line.startsWith(`  ${name} `));
}

/** An option that the old revision lacks is the usual reason, and is printed in one line. */
export function reasonOf(failure: string, side: 'old' | 'new', revision: string): string {
  const unknown = /Unknown option '([^']+)'/.exec(failure)?.[1];
  if (unknown === undefined) return `${side} failed: ${failure}`;
  const who = side === 'old' ? `the benchmark code of ${revision}` : 'this benchmark';
  return `${who} does not know ${unknown}; leave it out`;
}

/** Ours, hard-linked, if the locked versions are the same; else its own, installed. */
async function installDependencies(checkout: string): Promise<void> {
  const locks = [CHECKOUT, checkout].map((folder) =>
    readFile(join(folder, 'package-lock.json'), 'utf8'),
  );
  const [ours, theirs] = await Promise.all(locks);
  if (ours !== theirs) {
    console.log('its dependencies differ: they are installed');
    await run(process.execPath, ['scripts/install.mjs', '--with-tools'], {
      cwd: checkout,
      maxBuffer: 2 ** 26,
    });
    return;
  }
  const workspaces = await readdir(join(checkout, 'packages'));
  for (const folder of ['.', 'benchmarks', ...workspaces.map((name) => `packages/${name}`)]) {
    const from = join(CHECKOUT, folder, 'node_modules');
    const isThere = await stat(from).then(
      () => true,
      () => false,
    );
    if (!isThere) continue;
    const to = join(checkout, folder, 'node_modules');
    // Another file system takes no links to this one.
    await run('cp', ['-al', from, to]).catch(async () => {
      await rm(to, { recursive: true, force: true });
      await run('cp', ['-a', from, to]);
    });
  }
}
