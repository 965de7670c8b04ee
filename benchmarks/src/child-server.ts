/** Starts a server under test in its own process; measures its cost. */
import { execFile, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** One or more processes of the same server on one port, which the kernel shares out among them. */
export interface ChildServer {
  readonly url: string;
  readonly pids: readonly number[];
  /** CPU seconds used so far, user and system, of all. */
  cpuSeconds(): Promise<number>;
  /** Resident memory now, of the largest. */
  residentBytes(): Promise<number>;
  stop(): Promise<void>;
}

const CLOCK_TICKS_PER_SECOND = 100;

/** CPU seconds of any process, from `/proc`. */
export async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND;
}

/**
 * Keeps a process, with all its threads, on one core. With server, broker and load generator free to
 * move between two cores, each preempts the others and finds its caches cold: the same server took 16 µs
 * of CPU a call pinned and 22 µs unpinned.
 */
export async function pinToCore(pid: number, core: number): Promise<void> {
  await promisify(execFile)('taskset', ['-a', '-c', '-p', String(core), String(pid)]);
}

export interface ChildServerOptions {
  /** The program, run with the pinned Node. */
  readonly file: string;
  readonly environment: Record<string, string>;
  readonly url: string;
  /** It is ready when it answers GET here, with any status. */
  readonly readyPath: string;
  readonly processCount?: number;
  readonly nodeArguments?: readonly string[];
}

/** Starts it and waits until it is ready, 20 s at the most. */
export async function startChildServer({
  file,
  environment,
  url,
  readyPath,
  processCount = 1,
  nodeArguments = [],
}: ChildServerOptions): Promise<ChildServer> {
  const children = Array.from({ length: processCount }, () =>
    startProcess(file, environment, nodeArguments),
  );
  const deadline = Date.now() + 20_000;
  // One answer does not show that the others listen too, but they all started at the same time.
  for (let answers = 0; answers < 10 * processCount;) {
    for (const { process } of children) {
      if (process.exitCode !== null) throw new Error(`${file} ended with ${process.exitCode}`);
    }
    const answer = await fetch(`${url}${readyPath}`, { headers: { Connection: 'close' } }).catch(
      () => undefined,
    );
    if (answer) answers++;
    else if (Date.now() > deadline) throw new Error(`${file} did not answer on ${url}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const pids = children.map(({ process }) => process.pid as number);
  return {
    url,
    pids,
    async cpuSeconds() {
      const seconds = await Promise.all(pids.map(cpuSecondsOf));
      return seconds.reduce((sum, value) => sum + value, 0);
    },
    residentBytes: async () =>
      Math.max(...(await Promise.all(pids.map(memoryOf))).map((memory) => memory.residentBytes)),
    async stop() {
      for (const { process } of children) process.kill('SIGTERM');
      await Promise.all(children.map(({ ended }) => ended));
    },
  };
}

/** For services that keep secrets: a key for benchmarks alone. */
const BENCH_SEALING_KEYS = `bench:${Buffer.alloc(32, 7).toString('base64')}`;
/** As `npm run` and `infra/Dockerfile` start a service. */
export const QUICK_START = `--import=${join(import.meta.dirname, '../../scripts/quick-start.mjs')}`;
/** As `infra/Dockerfile` has it: memory is part of the bar. */
export const INTAKE_ARGUMENTS = [
  '--min-semi-space-size=16',
  '--max-semi-space-size=16',
  '--heap-growing-percent=100',
];

function startProcess(
  file: string,
  environment: Record<string, string>,
  nodeArguments: readonly string[],
) {
  const child = spawn(process.execPath, [...nodeArguments, file], {
    env: { SEALING_KEYS: BENCH_SEALING_KEYS, ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const endWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithUs);
  const ended = new Promise<void>((resolve) =>
    child.once('exit', () => {
      process.off('exit', endWithUs);
      resolve();
    }),
  );
  return { process: child, ended };
}

/** Memory of any process: all resident memory, and its own without shared and mapped pages. */
export async function memoryOf(
  pid: number,
): Promise<{ readonly residentBytes: number; readonly anonymousBytes: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const bytesOf = (name: string) =>
    Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024;
  return { residentBytes: bytesOf('VmRSS'), anonymousBytes: bytesOf('RssAnon') };
}
