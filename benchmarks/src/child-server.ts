/** Starts a server under test as its own process and watches what it costs. */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';

export interface ChildServer {
  readonly pid: number;
  readonly url: string;
  /** CPU seconds used so far, user and system. */
  cpuSeconds(): Promise<number>;
  /** Resident memory now. */
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

/** Runs `file` with the pinned Node until it answers GET `readyPath` (any status). */
export async function startChildServer(
  file: string,
  environment: Record<string, string>,
  url: string,
  readyPath: string,
): Promise<ChildServer> {
  // Small young generations: intake's objects die with their call, and memory is part of the bar.
  const child = spawn(process.execPath, ['--max-semi-space-size=8', file], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const deadline = Date.now() + 20_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${file} ended with ${child.exitCode}`);
    const answer = await fetch(`${url}${readyPath}`).catch(() => undefined);
    if (answer) break;
    if (Date.now() > deadline) throw new Error(`${file} did not answer on ${url}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const pid = child.pid as number;
  return {
    pid,
    url,
    cpuSeconds: () => cpuSecondsOf(pid),
    async residentBytes() {
      const status = await readFile(`/proc/${pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
    },
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
