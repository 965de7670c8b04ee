/**
 * Report of a benchmark, and its surroundings: the machine, the versions, the commit. Both go into
 * `results/<date>-<commit>-<name>.json` and into the last printed line.
 */
import { execFile } from 'node:child_process';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { replacedBy } from './kept-results.ts';

export interface Report {
  readonly bench: string;
  /** `ours/floor` → 0.61 */
  readonly ratios: Record<string, number>;
  readonly rates: Record<string, number>;
  readonly latencyMs: Record<string, number>;
  /** Further values worth keeping: memory, CPU shares, settings. */
  readonly details?: Record<string, unknown>;
  readonly versions?: Record<string, string>;
}

/** Machine, commit and time of a measurement. */
export interface Surroundings {
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memory_gb: number };
  /** At the begin, with `+changes` if files differed from it. */
  readonly commit: string;
  /** When it began. */
  readonly at: string;
}

/** A report as it is printed and kept. */
export interface PublishedReport extends Surroundings {
  readonly bench: string;
  readonly ratios: Record<string, number>;
  readonly rates: Record<string, number>;
  readonly latency_ms: Record<string, number>;
  readonly details?: Record<string, unknown>;
  readonly versions: Record<string, string>;
}

const RESULTS_DIRECTORY = join(import.meta.dirname, '..', 'results');

const run = async (command: string, ...arguments_: string[]): Promise<string> =>
  promisify(execFile)(command, arguments_, { cwd: import.meta.dirname }).then(
    ({ stdout }) => stdout.trim(),
    () => 'unknown',
  );

/** Call it before measuring: half an hour later there may be another commit. */
export async function readSurroundings(): Promise<Surroundings> {
  const commit = await run('git', 'rev-parse', '--short', 'HEAD');
  const isDirty = (await run('git', 'status', '--porcelain')) !== '';
  return {
    machine: {
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: cpus().length,
      memory_gb: Math.round(totalmem() / 2 ** 30),
    },
    commit: isDirty ? `${commit}+changes` : commit,
    at: new Date().toISOString(),
  };
}

/** Prints a report as one JSON line and, if it `isKept`, writes its file too. */
export async function publish(
  report: Report,
  surroundings: Surroundings,
  isKept: boolean,
): Promise<void> {
  const published: PublishedReport = {
    bench: report.bench,
    ratios: rounded(report.ratios),
    rates: rounded(report.rates),
    latency_ms: rounded(report.latencyMs),
    ...(report.details ? { details: report.details } : {}),
    versions: { node: process.version, ...report.versions },
    ...surroundings,
  };
  if (isKept) await keepResult(published);
  console.log(JSON.stringify(published));
}

/**
 * Writes a result into the results folder, in the place of the older ones of its name and month. @returns the file's
 * path.
 */
export async function keepResult(
  result: Pick<PublishedReport, 'bench' | 'commit' | 'at'>,
): Promise<string> {
  await mkdir(RESULTS_DIRECTORY, { recursive: true });
  const commit = result.commit.split('+')[0] as string;
  const name = `${result.at.slice(0, 10)}-${commit}-${result.bench}.json`;
  const file = join(RESULTS_DIRECTORY, name);
  await writeFile(file, `${JSON.stringify(result, undefined, 2)}\n`);
  for (const older of replacedBy(name, await readdir(RESULTS_DIRECTORY)))
    await rm(join(RESULTS_DIRECTORY, older));
  return file;
}

/** The median; NaN if there are no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [lower = NaN, upper = NaN] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return (lower + upper) / 2;
}

const rounded = (values: Record<string, number>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, Number(value.toPrecision(4))]),
  );
