/**
 * The fleet that suffers: two intakes, two workers, a Postgres and a Redis of their own, all real
 * processes, with a TCP way between each kind of service and each server.
 */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createDatabase, type Database } from '@sluice/database/connection';
import { startEmbeddedPostgres } from '@sluice/database/embedded-postgres';
import { migrate } from '@sluice/database/migrate';
import { seedDemoWorkspace } from '@sluice/database/seed-demo';
import { findFreePort } from '@sluice/platform/free-port';
import { migrateQueues } from '@sluice/platform/queue';
import {
  startRedisCluster,
  startRedisSentinels,
  type RedisFleet,
} from '@sluice/platform/redis-fleet';
import { startRedisServer } from '@sluice/platform/redis-server';
import { startServiceUnderTest } from '@sluice/platform/service-under-test';
import { startTcpProxy, type TcpProxy } from '@sluice/platform/tcp-proxy';
import {
  PROCESSES,
  type Broker,
  type Fault,
  type ProcessFault,
  type ProcessName,
  type WayName,
} from './fault-plan.ts';

export interface Fleet {
  readonly broker: Broker;
  /** Straight to Postgres. */
  readonly database: Database;
  /** The two intakes; the same for the whole life of the fleet. */
  readonly intakeUrls: readonly [string, string];
  /** `/readyz` of every service: undefined where it does not answer. */
  readiness(): Promise<{ readonly name: string; readonly body: ReadinessBody | undefined }[]>;
  /** Does it, waits, undoes it. */
  suffer(fault: Fault): Promise<void>;
  /** The last lines that a service logged, to find the reason of a failure. */
  lastLines(name: ProcessName): readonly string[];
  close(): Promise<void>;
}

export interface ReadinessBody {
  readonly ready: boolean;
  readonly [detail: string]: unknown;
}

interface Running {
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
const READINESS_DEADLINE_MS = 3_000;
const LINES_SHOWN = 15;

const mainOf = (service: string) =>
  fileURLToPath(new URL(`../../${service}/src/main.ts`, import.meta.url));

export async function startFleet(broker: Broker): Promise<Fleet> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-chaos-'));
  // Postgres' account must pass through.
  await chmod(directory, 0o711);
  const postgresOptions = { directory, durability: 'full', onProgress: () => {} } as const;
  let postgres = await startEmbeddedPostgres(postgresOptions);
  await postgres.createDatabase('chaos');
  const directUrl = postgres.url('chaos');
  const database = createDatabase({
    url: directUrl,
    poolMax: 4,
    applicationName: 'chaos',
    onError: () => {},
  });
  await migrate(database);
  await migrateQueues(directUrl);
  await seedDemoWorkspace(database);

  const redisOptions = { directory: join(directory, 'redis'), port: await findFreePort() };
  const servers = await startRedisSet(broker, redisOptions.directory);
  const ways = new Map<WayName, TcpProxy>();
  for (const service of ['intake', 'worker'] as const) {
    ways.set(`${service} to postgres`, await startTcpProxy('127.0.0.1', () => postgres.port));
    ways.set(`${service} to redis`, await startTcpProxy('127.0.0.1', redisOptions.port));
  }
  const redisUrlFor = (service: 'intake' | 'worker'): string | undefined => {
    if (servers) return servers.url;
    return broker === 'redis' ? `redis://127.0.0.1:${portOf(`${service} to redis`)}` : undefined;
  };
  const portOf = (way: WayName) => (ways.get(way) as TcpProxy).port;
  const ports = {
    'intake-0': await findFreePort(),
    'intake-1': await findFreePort(),
    'worker-0': await findFreePort(),
    'worker-1': await findFreePort(),
  };

  const settingsOf = (service: 'intake' | 'worker', index: number): Record<string, string> => {
    const databaseUrl = new URL(directUrl);
    databaseUrl.host = `127.0.0.1:${portOf(`${service} to postgres`)}`;
    const redisUrl = redisUrlFor(service);
    return {
      DATABASE_URL: databaseUrl.href,
      ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
      REDIS_REPLICA_GRACE_MS: '4000',
      SHARD_COUNT: '4',
      QUEUE_STALLED_AFTER_MS: '1500',
      INTAKE_COMMIT_DEADLINE_MS: '400',
      // One folder each: taking over what a dead intake left is not what these runs try.
      INTAKE_SPILL_DIRECTORY: join(directory, `spill-${index}`),
      INTAKE_PORT: String(ports[`intake-${index as 0 | 1}`]),
      WORKER_PORT: String(ports[`worker-${index as 0 | 1}`]),
      WORKER_HUNG_AFTER_MS: '6000',
    };
  };
  const startService = async (service: 'intake' | 'worker', index: number): Promise<Running> => {
    const started = await startServiceUnderTest(mainOf(service), settingsOf(service, index));
    const lines = () => started.logs.slice(-LINES_SHOWN).map((line) => JSON.stringify(line));
    return { pid: started.pid, ended: started.ended, lines };
  };

  const processes = new Map<ProcessName, Process>();
  const add = async (name: ProcessName, start: () => Promise<Running>) =>
    void processes.set(name, { running: await start(), start });
  processes.set('postgres', {
    running: postgres,
    async start() {
      postgres = await startEmbeddedPostgres(postgresOptions);
      return postgres;
    },
  });
  if (broker === 'redis') await add('redis', () => startRedisServer(redisOptions));
  await Promise.all(
    ([0, 1] as const).flatMap((index) => [
      add(`intake-${index}`, () => startService('intake', index)),
      add(`worker-${index}`, () => startService('worker', index)),
    ]),
  );

  let isClosing = false;
  /** As a supervisor does: again until it lives. */
  const startAgain = async (process: Process): Promise<void> => {
    const deadlineMs = performance.now() + START_DEADLINE_MS;
    for (;;) {
      try {
        process.running = await process.start();
        return;
      } catch (error) {
        if (performance.now() > deadlineMs || isClosing) throw error;
        await sleep(100);
      }
    }
  };
  // A service may end by itself (a worker that hangs does); what ends is started again.
  const supervise = async (process: Process): Promise<void> => {
    while (!isClosing) {
      await process.running.ended;
      if (!isClosing) await startAgain(process);
    }
  };
  const supervising = [...processes]
    .filter(([name]) => name !== 'postgres' && name !== 'redis')
    .map(([, process]) => supervise(process).catch(() => undefined));

  /** A master, whichever is one now. */
  async function sufferMaster(kind: 'kill' | 'stop', durationMs: number): Promise<void> {
    const [master] = (await servers?.masters()) ?? [];
    if (!master) throw new Error('no server is master');
    if (kind === 'stop') signal([master.pid], 'SIGSTOP');
    else await master.kill();
    await sleep(durationMs);
    if (kind === 'stop') signal([master.pid], 'SIGCONT');
    else await master.restart();
  }

  async function sufferProcess({ kind, target, durationMs }: ProcessFault): Promise<void> {
    if (servers && target === 'redis') return sufferMaster(kind, durationMs);
    const process = processes.get(target) as Process;
    const pids = await processesOf(process.running.pid);
    if (kind === 'stop') {
      signal(pids, 'SIGSTOP');
      await sleep(durationMs);
      signal(pids, 'SIGCONT');
      return;
    }
    signal([process.running.pid], 'SIGKILL');
    await process.running.ended;
    // Services are started again at once by their supervisor, servers after a while.
    if (target !== 'postgres' && target !== 'redis') return;
    await sleep(durationMs);
    await startAgain(process);
  }

  return {
    broker,
    database,
    intakeUrls: [`http://127.0.0.1:${ports['intake-0']}`, `http://127.0.0.1:${ports['intake-1']}`],
    readiness: () =>
      Promise.all(
        (Object.keys(ports) as (keyof typeof ports)[]).map(async (name) => ({
          name,
          body: await fetch(`http://127.0.0.1:${ports[name]}/readyz`, {
            signal: AbortSignal.timeout(READINESS_DEADLINE_MS),
          })
            .then((answer) => answer.json() as Promise<ReadinessBody>)
            .catch(() => undefined),
        })),
      ),
    async suffer(fault) {
      if (fault.of === 'process') return sufferProcess(fault);
      const way = ways.get(fault.target) as TcpProxy;
      if (fault.kind === 'cut') way.cut();
      else if (fault.kind === 'hold') way.hold();
      else way.holdAnswers();
      await sleep(fault.durationMs);
      if (fault.kind === 'mute') way.cut();
      way.restore();
    },
    lastLines: (name) => processes.get(name)?.running.lines?.() ?? [],
    async close() {
      isClosing = true;
      await database.destroy();
      const services = PROCESSES.filter((name) => name !== 'postgres');
      for (const name of services) {
        const found = processes.get(name);
        if (found) signal([found.running.pid], 'SIGKILL');
      }
      await Promise.all(supervising);
      await servers?.close();
      await Promise.all([...ways.values()].map((way) => way.close()));
      await postgres.remove();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Several Redis servers that stand in for one another; undefined where the broker is one server. */
function startRedisSet(broker: Broker, directory: string): Promise<RedisFleet> | undefined {
  if (broker === 'cluster') return startRedisCluster(directory);
  return broker === 'sentinels' ? startRedisSentinels(directory) : undefined;
}

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

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // It has ended meanwhile.
    }
  }
}
