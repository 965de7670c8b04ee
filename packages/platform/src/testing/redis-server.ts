/**
 * A real `redis-server` as a child process, for tests and benchmarks. Also for chaos runs. (A production Redis is the
 * operator's, or `infra/compose.yaml`'s.)
 *
 * Its settings make an acknowledgement durable: every write is in the append-only file, on disk, before it is
 * confirmed.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { AppError } from '@sluice/domain/values/errors';
import { findFreePort } from './free-port.ts';

const READY_DEADLINE_MS = 45_000;
const STOP_DEADLINE_MS = 10_000;
const POLL_INTERVAL_MS = 10;

export interface RedisServerOptions {
  /** Holds the append-only file; created when missing. Give the same one again to come back with the data. */
  readonly directory: string;
  /** Absent: a free one. */
  readonly port?: number;
  /** `always` by default: on disk before it is confirmed. */
  readonly appendFsync?: 'always' | 'everysec' | 'no';
  /** More lines of `redis.conf`, as arguments: `['--maxmemory', '64mb']`. */
  readonly extraArguments?: readonly string[];
}

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  /** Resolves when it ends, asked to or not. */
  readonly ended: Promise<void>;
  /** Ends it in good order. */
  readonly stop: () => Promise<void>;
  /** As a crash would: SIGKILL. */
  readonly kill: () => Promise<void>;
}

/** @throws AppError BROKER_UNAVAILABLE when it is not installed or does not come up, with its last words. */
export async function startRedisServer(options: RedisServerOptions): Promise<RedisServer> {
  await mkdir(options.directory, { recursive: true });
  const port = options.port ?? (await findFreePort());
  return runRedisServer(redisArguments(options, port), port);
}

/** A `redis-server` of any kind, once it answers on `port`; the same promises. */
export async function runRedisServer(
  serverArguments: readonly string[],
  port: number,
): Promise<RedisServer> {
  // In a session of its own: Ctrl-C reaches only us, and we stop it when its clients are done.
  const child = spawn('redis-server', serverArguments, {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lastWords = collectLastWords(child);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await startFailure(child, port, lastWords);
  const guard = spawnGuard(child.pid as number);
  void ended.then(() => guard.kill('SIGKILL'));

  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    child.kill(signal);
    const deadline = setTimeout(() => child.kill('SIGKILL'), STOP_DEADLINE_MS);
    await ended;
    clearTimeout(deadline);
  };
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    pid: child.pid as number,
    ended,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}

function redisArguments(options: RedisServerOptions, port: number): string[] {
  return [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', options.directory],
    ...['--appendonly', 'yes', '--appendfsync', options.appendFsync ?? 'always'],
    // The append-only file is the data; snapshots beside it would only cost time.
    ...['--save', ''],
    // BullMQ's keys must never be evicted.
    ...['--maxmemory-policy', 'noeviction'],
    // Debian's build warns of a locale bug on some ARM machines and then refuses to start.
    ...['--daemonize', 'no', '--ignore-warnings', 'ARM64-COW-BUG'],
    ...(options.extraArguments ?? []),
  ];
}

/** Reads both streams to the end, so that the server never blocks on a full pipe; keeps the last of it. */
function collectLastWords(child: ChildProcess): () => string {
  let words = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => void (words = (words + chunk.toString()).slice(-4_000)));
  }
  return () => words.trimEnd().split('\n').slice(-8).join('\n');
}

/** Returns when the port answers; throws when the process ended or could not be run. */
async function startFailure(child: ChildProcess, port: number, words: () => string): Promise<void> {
  let failure: string | undefined;
  child.once('error', (error: NodeJS.ErrnoException) => {
    failure =
      error.code === 'ENOENT'
        ? 'redis-server is not installed; run apt-get install redis-server (Debian, Ubuntu) or brew install redis (macOS)'
        : error.message;
  });
  child.once('exit', (code) => (failure ??= `redis-server ended with ${code}:\n${words()}`));
  const deadlineMs = performance.now() + READY_DEADLINE_MS;
  while (failure === undefined && !(await isAnswering(port, child.pid ?? 0))) {
    if (performance.now() > deadlineMs) {
      child.kill('SIGKILL');
      failure = `redis-server did not answer on port ${port}:\n${words()}`;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
  if (failure !== undefined) throw new AppError('BROKER_UNAVAILABLE', failure);
}

/**
 * Asks as a client would: while it still loads its file it answers `-LOADING`. And asks whose
 * answer it is: on a port that was taken another Redis would answer for ours, which is ending.
 */
async function isAnswering(port: number, pid: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    socket.setTimeout(1_000, () => socket.destroy(new Error('timeout')));
    socket.write('INFO server\r\nPING\r\n');
    let reply = '';
    for await (const chunk of socket) {
      reply += String(chunk);
      if (reply.includes('+PONG\r\n')) return reply.includes(`process_id:${pid}\r\n`);
      if (reply.includes('-LOADING')) return false;
    }
    return false;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Ends the server when we end in any way, `kill -9` included: the pipe that we hold closes. */
function spawnGuard(pid: number): ChildProcess {
  const guard = spawn(
    '/bin/sh',
    ['-c', 'while read -r _; do :; done; kill -TERM "$0"', String(pid)],
    {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    },
  );
  guard.on('error', () => {});
  guard.unref();
  return guard;
}
