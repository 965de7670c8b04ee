/**
 * The Postgres process: spawned in a session of its own, its words in a file, a guard beside it.
 *
 * The guard is one `sh`, asleep on a pipe that we hold. When we end, however that comes, the pipe
 * closes and the guard asks Postgres to stop.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { open, readFile, rename, stat } from 'node:fs/promises';
import { SERVER_ENVIRONMENT, type ServerAccount } from './postgres-account.ts';
import { lastLines } from './postgres-cluster.ts';
import type { Durability } from './postgres-settings.ts';

const FAST_STOP_DEADLINE_MS = 15_000;
const LOG_SIZE_BYTES_MAX = 8_388_608;

export interface PostgresServer {
  /** Of the process that the others are children of. */
  readonly pid: number;
  /** Resolves when it ends, asked to or not, with its last words. */
  readonly ended: Promise<string>;
  readonly stop: () => Promise<void>;
}

/** Starts it; it is not ready yet. The programs are run as `account`, on data that account owns. */
export async function spawnPostgres(options: {
  readonly postgres: string;
  readonly directory: string;
  readonly dataPath: string;
  readonly account: ServerAccount;
  readonly logFile: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly durability: Durability;
}): Promise<PostgresServer> {
  const { dataPath, logFile, durability } = options;
  const size = await stat(logFile).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LOG_SIZE_BYTES_MAX) await rename(logFile, `${logFile}.1`);
  // A file, not a pipe to us: the server's last words outlive us, and reading them needs no extra work.
  const log = await open(logFile, 'a', 0o600);
  const wordsFrom = (await log.stat()).size;
  const settings = Object.entries(options.settings);
  const child = spawn(
    options.postgres,
    ['-D', dataPath, ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    {
      cwd: '/',
      env: SERVER_ENVIRONMENT,
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
      ...options.account,
    },
  );
  const exited = new Promise<string>((resolve) => {
    child.once('exit', () => resolve(''));
    child.once('error', (error) => resolve(error.message));
  });
  await log.close();
  const worthless = durability === 'none' ? [dataPath, options.directory] : [];
  const guard = child.pid === undefined ? undefined : spawnGuard(child.pid, worthless);
  const ended = exited.then(async (reason) => {
    guard?.kill('SIGKILL');
    const words = (await readFile(logFile)).subarray(wordsFrom).toString();
    return lastLines(`${words}${reason}`);
  });
  return { pid: child.pid ?? 0, ended, stop: () => stopServer(child, ended) };
}

/**
 * SIGTERM lets clients finish and then ends: our services drain over connections that they have. If the data is only
 * for tests, it does not wait for clients, and the `worthless` folders are removed too.
 */
function spawnGuard(postmasterPid: number, worthless: readonly string[]): ChildProcess {
  const untilWeEnd = 'while read -r _; do :; done; pid=$1; shift;';
  const stop =
    worthless.length === 0
      ? 'kill -TERM "$pid"'
      : 'kill -INT "$pid"; for _ in 1 2 3 4 5 6 7 8 9; do kill -0 "$pid" && sleep 0.1; done; rm -rf "$@"';
  const guard = spawn(
    '/bin/sh',
    ['-c', `${untilWeEnd} ${stop}`, 'sh', String(postmasterPid), ...worthless],
    {
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    },
  );
  guard.on('error', () => {});
  guard.unref();
  return guard;
}

async function stopServer(child: ChildProcess, ended: Promise<string>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined)
    return void (await ended);
  // SIGINT: "fast" shutdown, clients are cut off. SIGQUIT: at once, recovered at the next start.
  child.kill('SIGINT');
  const deadline = setTimeout(() => child.kill('SIGQUIT'), FAST_STOP_DEADLINE_MS);
  await ended;
  clearTimeout(deadline);
}
