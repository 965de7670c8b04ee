/**
 * `npm start` with its defaults over servers of its own, for kills.
 *
 * It has a Postgres, and a Redis if asked for. Its services can be killed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { startRedisServer } from '@sluice/platform/testing/redis-server';

export interface Installation {
  readonly database: Database;
  readonly intakeUrl: string;
  /** A POST to the API as the demo workspace. @throws Error if it is refused. */
  ask(path: string, body: object): Promise<unknown>;
  /**
   * @returns a function that sends SIGKILL to the processes that run now and contain intake or the worker, all at once.
   */
  prepareKill(): Promise<() => void>;
  /** The last lines that `npm start` and its services have written. */
  readonly lastLines: () => string;
  close(): Promise<void>;
}

const CONNECT_MS_MAX = 60_000;
/** Of the output, for the message of a failure. */
const LAST_LENGTH = 4_000;
const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));

/** Functions of the process that starts the installation. */
export interface Host {
  readonly path: string | undefined;
  readonly kill: (pid: number) => void;
  /** Called with the output of `npm start` and its services. */
  readonly onLog: (text: string) => void;
}

export async function startInstallation(
  broker: 'redis' | 'postgres',
  host: Host,
): Promise<Installation> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-kills-'));
  // Postgres' account must pass through.
  await chmod(directory, 0o711);
  const postgres = await startEmbeddedPostgres({
    directory,
    durability: 'full',
    settings: { max_connections: '200' },
    onProgress: () => {},
  });
  await postgres.createDatabase('kills');
  const databaseUrl = postgres.url('kills');
  const redisPort = await findFreePort();
  const redis =
    broker === 'redis'
      ? await startRedisServer({ directory: join(directory, 'redis'), port: redisPort })
      : undefined;
  const ports = await Promise.all(Array.from({ length: 4 }, () => findFreePort()));
  const [intakePort, apiPort, workerPort, simulatorPort] = ports;
  // The command of `npm start`, flags and caches included. The shell replaces itself, so that this is the supervisor.
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    readonly scripts: { readonly start: string };
  };
  const child = spawn('sh', ['-c', scripts.start], {
    cwd: ROOT,
    env: {
      PATH: host.path,
      SLUICE_DIRECTORY: join(directory, 'sluice'),
      DATABASE_URL: databaseUrl,
      ...(redis && { REDIS_URL: `redis://127.0.0.1:${redisPort}` }),
      INTAKE_PORT: String(intakePort),
      API_PORT: String(apiPort),
      WORKER_PORT: String(workerPort),
      SIMULATOR_PORT: String(simulatorPort),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      host.onLog(text);
    });
  while (!/Sluice is ready[^]*\/v1\/customers/.test(output)) {
    if (child.exitCode !== null) throw new Error(`npm start ended: ${output}`);
    await Promise.race([once(child.stdout, 'data'), once(child, 'close')]);
  }
  const database = createDatabase({
    url: databaseUrl,
    poolMax: 2,
    // It shares the machine with the load.
    connectMsMax: CONNECT_MS_MAX,
    applicationName: 'chaos',
    onError: () => {},
  });
  return {
    database,
    intakeUrl: `http://127.0.0.1:${intakePort}`,
    async ask(path, body) {
      const answer = await fetch(`http://127.0.0.1:${apiPort}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${DEMO.appKey}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify(body),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`);
      return JSON.parse(text) as unknown;
    },
    async prepareKill() {
      const pids = (await listProcesses(child.pid as number))
        .filter(({ command }) =>
          /\/(?:(?:intake|worker)\/src\/main|standalone\/src\/services\/main)\.ts/.test(command),
        )
        .map(({ pid }) => pid);
      if (pids.length === 0) throw new Error('npm start has no intake and no worker');
      return () => pids.forEach((pid) => host.kill(pid));
    },
    lastLines: () => output.slice(-LAST_LENGTH),
    async close() {
      await database.destroy();
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'close');
      await redis?.kill();
      await postgres.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The children of a process, by Linux' list of processes. */
async function listProcesses(
  parent: number,
): Promise<{ readonly pid: number; readonly command: string }[]> {
  const found: { pid: number; command: string }[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    // The name in brackets may hold anything; state and parent come behind it.
    if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) !== parent) continue;
    const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    found.push({ pid: Number(name), command });
  }
  return found;
}
