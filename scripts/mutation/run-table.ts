/** The table of mutation runs, as `docs/contributing/mutation-runs.md` has it. */
import { execFileSync } from 'node:child_process';

/** The counts of one file. */
export interface FileRun {
  readonly path: string;
  /** Mutants of the file; fewer are tried with `--count`, or if the time is over. */
  readonly mutantCount: number;
  readonly triedCount: number;
  readonly killedCount: number;
  readonly survivedCount: number;
  /** Chosen, and not run: they are kept as equivalent. */
  readonly equivalentCount: number;
}

const HEAD = [
  '| file | mutants | tried | killed | survived | equivalent | seed | commit |',
  '|---|---:|---:|---:|---:|---:|---:|---|',
];

/** @param run - common to all files. */
export function tableOf(
  files: readonly FileRun[],
  run: { readonly seed: string; readonly commit: string },
): string {
  const rows = files.map((file) =>
    [
      `\`${file.path.replace(/^packages\//, '')}\``,
      file.mutantCount,
      file.triedCount,
      file.killedCount,
      file.survivedCount,
      file.equivalentCount,
      run.seed,
      run.commit,
    ].join(' | '),
  );
  return [...HEAD, ...rows.map((row) => `| ${row} |`)].join('\n');
}

/** The present commit, with `+` if a file of the checkout differs from it. */
export function commitOf(root: string): string {
  const git = (...given: string[]): string =>
    execFileSync('git', given, { cwd: root, encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain', '--untracked-files=no') !== '';
  return git('rev-parse', '--short=8', 'HEAD') + (isChanged ? '+' : '');
}
