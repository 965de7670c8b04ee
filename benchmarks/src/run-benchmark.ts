/**
 * Runs one benchmark, of this checkout or another, in its own process. So pinned cores, memory and crashes do
 * not reach the next one. Its lines are handed on as they come; the last one that is a report is the result.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import type { PublishedReport } from './report.ts';

/** Longer than any takes in its full form; one that hangs must not hold up the others for ever. */
const DEADLINE_MS = 45 * 60_000;

export type BenchmarkOutcome =
  | { readonly outcome: 'measured'; readonly report: PublishedReport; readonly seconds: number }
  | { readonly outcome: 'failed'; readonly failure: string; readonly seconds: number };

/**
 * @param checkout the folder of the whole project.
 * @param onLine gets each line that it prints, but not its report.
 */
export async function runBenchmark(
  checkout: string,
  arguments_: readonly string[],
  onLine: (line: string) => void,
): Promise<BenchmarkOutcome> {
  const startedAtMs = performance.now();
  // A process group of its own: its services end with it even if it hangs and is killed.
  const child = spawn(process.execPath, [join(checkout, 'benchmarks/src/main.ts'), ...arguments_], {
    cwd: checkout,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const endGroup = (): void => {
    try {
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      // All of it has ended.
    }
  };
  process.once('exit', endGroup);
  const deadline = setTimeout(endGroup, DEADLINE_MS);
  let report: PublishedReport | undefined;
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('{"bench":')) report = JSON.parse(line) as PublishedReport;
    else onLine(line);
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(deadline);
  process.off('exit', endGroup);
  endGroup();
  const seconds = (performance.now() - startedAtMs) / 1_000;
  if (code === 0 && report) return { outcome: 'measured', report, seconds };
  return {
    outcome: 'failed',
    failure: failureIn(errors) ?? (code === null ? 'was killed' : `ended with ${code}`),
    seconds,
  };
}

/** The line of an uncaught error with its message, or the last one. */
export function failureIn(errors: string): string | undefined {
  const isProgress = (line: string): boolean => line.startsWith('{"progress":');
  const lines = errors.split('\n').filter((line) => line.trim() !== '' && !isProgress(line));
  const named = lines.find((line) => /^\w*(Error|Exception)\b.*: /.test(line));
  return (named ?? lines.at(-1))?.trim();
}
