/** What every benchmark says of itself: the machine, the versions, the commit; and its last line. */
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface Report {
  readonly bench: string;
  /** `ours/floor` → 0.61 */
  readonly ratios: Record<string, number>;
  readonly rates: Record<string, number>;
  readonly latencyMs: Record<string, number>;
  /** Whatever else is worth keeping: memory, CPU shares, settings. */
  readonly details?: Record<string, unknown>;
  readonly versions?: Record<string, string>;
}

const run = async (command: string, ...arguments_: string[]): Promise<string> =>
  promisify(execFile)(command, arguments_).then(
    ({ stdout }) => stdout.trim(),
    () => 'unknown',
  );

/** Writes `results/<date>-<commit>-<name>.json` and prints the one JSON line. */
export async function publish(report: Report): Promise<void> {
  const commit = await run('git', 'rev-parse', '--short', 'HEAD');
  const isDirty = (await run('git', 'status', '--porcelain')) !== '';
  const [cpu] = cpus();
  const line = {
    bench: report.bench,
    ratios: rounded(report.ratios),
    rates: rounded(report.rates),
    latency_ms: rounded(report.latencyMs),
    ...(report.details ? { details: report.details } : {}),
    machine: {
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memory_gb: Math.round(totalmem() / 2 ** 30),
    },
    versions: { node: process.version, ...report.versions },
    commit: isDirty ? `${commit}+changes` : commit,
    at: new Date().toISOString(),
  };
  const directory = join(import.meta.dirname, '..', 'results');
  await mkdir(directory, { recursive: true });
  const name = `${line.at.slice(0, 10)}-${commit}-${report.bench}.json`;
  await writeFile(join(directory, name), `${JSON.stringify(line, undefined, 2)}\n`);
  console.log(JSON.stringify(line));
}

/** The middle value; of an even count the lower one. */
export function median(values: readonly number[]): number {
  return [...values].toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] as number;
}

const rounded = (values: Record<string, number>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, Number(value.toPrecision(4))]),
  );
