/**
 * The processes of a fleet.
 *
 * Each is started again on the same port and data: a service at once by its supervisor, a server when the fault that
 * ended it is over.
 *
 * Used by `fleet-under-test.ts`.
 */
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { ProcessFault, ProcessName } from './fault-plan.ts';

/** A process as it was last started. */
export interface Running {
  readonly pid: number;
  readonly ended: Promise<unknown>;
  readonly lines?: () => readonly string[];
}

/** One process that is started again on the same port and data. */
interface Process {
  running: Running;
  readonly start: () => Promise<Running>;
}

const START_DEADLINE_MS = 120_000;

export class SupervisedProcesses {
  readonly #processes = new Map<ProcessName, Process>();
  #supervising: readonly Promise<void>[] = [];
  #isClosing = false;

  /** @param running - absent: it is started. */
  async add(name: ProcessName, start: () => Promise<Running>, running?: Running): Promise<void> {
    this.#processes.set(name, { running: running ?? (await start()), start });
  }

  /** A service may end by itself (a worker that hangs does); from now on an ended service is started again. */
  supervise(): void {
    this.#supervising = [...this.#processes]
      .filter(([name]) => !isServer(name))
      .map(([, process]) => this.#superviseOne(process).catch(() => undefined));
  }

  lastLines(name: ProcessName): readonly string[] {
    return this.#processes.get(name)?.running.lines?.() ?? [];
  }

  async suffer({ kind, target, durationMs }: ProcessFault): Promise<void> {
    const process = this.#processes.get(target) as Process;
    const pids = await processesOf(process.running.pid);
    if (kind === 'stop') {
      signal(pids, 'SIGSTOP');
      await sleep(durationMs);
      signal(pids, 'SIGCONT');
      return;
    }
    signal([process.running.pid], 'SIGKILL');
    await process.running.ended;
    if (!isServer(target)) return;
    await sleep(durationMs);
    await this.#startAgain(process);
  }

  /** Kills all of them but Postgres, which the fleet takes away. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const [name, { running }] of this.#processes)
      if (name !== 'postgres') signal([running.pid], 'SIGKILL');
    await Promise.all(this.#supervising);
  }

  async #superviseOne(process: Process): Promise<void> {
    while (!this.#isClosing) {
      await process.running.ended;
      if (!this.#isClosing) await this.#startAgain(process);
    }
  }

  /** Again until it lives. */
  async #startAgain(process: Process): Promise<void> {
    const deadlineMs = performance.now() + START_DEADLINE_MS;
    for (;;) {
      try {
        process.running = await process.start();
        return;
      } catch (error) {
        if (performance.now() > deadlineMs || this.#isClosing) throw error;
        await sleep(100);
      }
    }
  }
}

const isServer = (name: ProcessName): boolean => name === 'postgres' || name === 'redis';

/** The process and its children: Postgres has a process a connection. */
async function processesOf(pid: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=']);
  const children = stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .filter(([, parent]) => parent === pid)
    .map(([child]) => child as number);
  return [pid, ...children];
}

export function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // It has ended meanwhile.
    }
  }
}
