/**
 * The services of a runbook's world. Some are started here. `npm run roll`, which the operator types, replaces them by
 * processes that it starts itself, and prints their ids.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';

export type Service = 'intake' | 'api' | 'worker';

export interface FleetProcess {
  readonly pid: number;
  readonly port: number;
  /** Its newest lines, parsed. */
  lastLogs(): readonly unknown[];
  /** Resolves when a signal that ends it has done so. */
  kill(signal: NodeJS.Signals): Promise<unknown>;
}

export const CHECKOUT = fileURLToPath(new URL('../../../../', import.meta.url));
const run = promisify(execFile);
const SERVICES: readonly Service[] = ['intake', 'api', 'worker'];
const LOGS_SHOWN_MAX = 5;
const POLL_INTERVAL_MS = 20;

export class Fleet {
  /** The newest last. */
  readonly processes: Readonly<Record<Service, FleetProcess[]>> = {
    intake: [],
    api: [],
    worker: [],
  };
  readonly #settings: Record<string, string>;
  readonly #directory: string;

  /** @param directory - that the services run in: a process that replaces another one runs in its folder. */
  constructor(settings: Readonly<Record<string, string>>, directory: string) {
    this.#settings = { ...settings };
    this.#directory = directory;
  }

  async start(service: Service): Promise<void> {
    const main = join(CHECKOUT, 'packages', service, 'src/main.ts');
    const started = await startServiceUnderTest(main, this.#settings, undefined, this.#directory);
    const { pid, port, logs } = started;
    this.processes[service].push({
      pid,
      port,
      kill: (signal) => started.kill(signal),
      lastLogs: () => logs.slice(-LOGS_SHOWN_MAX),
    });
  }

  async startAll(): Promise<void> {
    await Promise.all(SERVICES.map((service) => this.start(service)));
  }

  /** One address for the process that is there, as a load balancer has. */
  portOf(service: Service): number {
    return this.processes[service].at(-1)?.port ?? 0;
  }

  /** Ended processes are not counted. */
  countRunning(service: Service): number {
    return this.processes[service].filter(({ pid }) => isThere(pid)).length;
  }

  /** @param lines - settings that were typed, `NAME=VALUE`, and the output of `npm run roll`. */
  notice(service: Service, lines: readonly string[]): void {
    for (const line of lines) {
      if (line.startsWith('{')) this.#noticeProcess(service, JSON.parse(line) as RollLine);
      else if (line.includes('=')) {
        const [name = '', value = ''] = line.split(/=(.*)/s);
        this.#settings[name] = value;
      }
    }
  }

  /** As a crash would. */
  async end(): Promise<void> {
    const all = SERVICES.flatMap((service) => this.processes[service].splice(0));
    await Promise.all(all.map((each) => each.kill('SIGKILL')));
  }

  #noticeProcess(service: Service, { started, port, log, replaced }: RollLine): void {
    const processes = this.processes[service];
    if (started !== undefined && port !== undefined && log !== undefined)
      processes.push(processOf(started, port, log));
    const at = processes.findIndex(({ pid }) => pid === replaced);
    if (at !== -1) processes.splice(at, 1);
  }
}

/** A line of `scripts/roll.mjs`. */
interface RollLine {
  readonly started?: number;
  readonly port?: number;
  readonly log?: string;
  readonly replaced?: number;
}

function processOf(pid: number, port: number, logFile: string): FleetProcess {
  return {
    pid,
    port,
    lastLogs: () =>
      readFileSync(logFile, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .slice(-LOGS_SHOWN_MAX),
    async kill(signal) {
      // A process that is gone already is the wanted result.
      await run('sh', ['-c', `kill -s ${signal.slice('SIG'.length)} ${pid}`]).catch(
        () => undefined,
      );
      if (signal !== 'SIGSTOP' && signal !== 'SIGCONT')
        while (isThere(pid)) await sleep(POLL_INTERVAL_MS);
    },
  };
}

/** One that ended and whose parent has not looked yet is gone. */
function isThere(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
