/**
 * A real Postgres 18 as a child of this process: made on first use, started, watched, stopped.
 *
 * - It runs in a session of its own, so that Ctrl-C in a terminal reaches only us; who starts it
 *   stops it last, after its clients are drained.
 * - It does not outlive us. A guard sees our end, however it comes, and asks Postgres to stop once
 *   its clients have left.
 * - A server that is nevertheless still there is stopped at the next start, and a new one started.
 *
 * Process and guard: `postgres-server.ts`. Settings: `postgres-settings.ts`. Data:
 * `postgres-cluster.ts`. Account: `postgres-account.ts`. Programs: `postgres-binaries.ts`.
 */
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { AppError } from '@sluice/domain/values/errors';
import pg from 'pg';
import { chooseServerAccount } from './postgres-account.ts';
import { locatePostgresBinaries } from './postgres-binaries.ts';
import { dataLink, EMBEDDED_USER, prepareCluster, removeCluster } from './postgres-cluster.ts';
import { spawnPostgres, type PostgresServer } from './postgres-server.ts';
import { postgresSettings, type Durability } from './postgres-settings.ts';
import { stopStaleServer } from './postgres-stale.ts';

/** Recovery after a crash replays at most `max_wal_size`: seconds. Beyond this something is wrong. */
const READY_DEADLINE_MS = 120_000;
const POLL_INTERVAL_MS = 20;
/** Another process may take the free port between our asking and Postgres' binding. */
const PORT_ATTEMPTS_MAX = 3;

export interface EmbeddedPostgresOptions {
  /** Holds the data (or the link to it), the password, the port last used and the server's log. */
  readonly directory: string;
  readonly durability: Durability;
  /** Memory that everything on this machine shares (or in the container, if one bounds it). Default: the machine's. */
  readonly memoryBytes?: number;
  /** Postgres settings, in place of ours or beside them. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Called for steps that can take a while. */
  readonly onProgress: (line: string) => void;
}

export interface EmbeddedPostgres {
  readonly port: number;
  readonly pid: number;
  readonly logFile: string;
  /** The address of a database of this server, which need not exist. */
  url(database: string): string;
  /** Creates the database unless it exists. */
  createDatabase(name: string): Promise<void>;
  /** Resolves when the server ends, asked to or not, with its last words. */
  readonly ended: Promise<string>;
  /** Disconnects clients, writes memory to disk, ends. May be called twice. */
  readonly stop: () => Promise<void>;
  /** `stop`, and removes the data. */
  readonly remove: () => Promise<void>;
}

/** @throws AppError DATABASE_START_FAILED with Postgres' own last words; DATA_DIRECTORY_HELD. */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { directory, durability, memoryBytes = totalmem(), settings = {}, onProgress } = options;
  const account = await chooseServerAccount(dataLink(directory));
  const binaries = await locatePostgresBinaries(account, onProgress);
  const { dataPath, password } = await prepareCluster({
    directory,
    account,
    durability,
    onProgress,
    initdb: binaries.initdb,
    majorVersion: binaries.majorVersion,
  });
  await stopStaleServer({ dataPath, account, pgCtl: binaries.pgCtl, onProgress });

  const portFile = join(directory, 'postgres-port');
  const logFile = join(directory, 'postgres.log');
  const urlOn = (port: number, database: string): string =>
    `postgres://${EMBEDDED_USER}:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;

  const wantedPort = Number(await readFile(portFile, 'utf8').catch(() => '0'));
  for (let attempt = 1; ; attempt++) {
    const port = await findFreePort(attempt === 1 ? wantedPort : 0);
    const server = await spawnPostgres({
      ...binaries,
      directory,
      dataPath,
      account,
      logFile,
      settings: { ...postgresSettings(port, durability, memoryBytes), ...settings },
      durability,
    });
    const giveUp = new AbortController();
    const words = await Promise.race([
      waitUntilReady(urlOn(port, 'postgres'), giveUp.signal, onProgress),
      server.ended,
    ]);
    giveUp.abort();
    if (words === undefined) {
      await writeFile(portFile, String(port), { mode: 0o600 });
      return describe(server, port);
    }
    await server.stop();
    const isPortTaken = words.includes('Address already in use');
    if (!isPortTaken || attempt === PORT_ATTEMPTS_MAX) {
      throw new AppError(
        'DATABASE_START_FAILED',
        `Postgres did not start (its log is ${logFile}). Correct the cause, then start again:\n${words}`,
      );
    }
  }

  function describe(server: PostgresServer, port: number): EmbeddedPostgres {
    return {
      port,
      pid: server.pid,
      logFile,
      url: (database) => urlOn(port, database),
      createDatabase: (name) => createMissingDatabase(urlOn(port, 'postgres'), name),
      ended: server.ended,
      stop: server.stop,
      async remove() {
        await server.stop();
        await removeCluster(directory);
      },
    };
  }
}

/** Resolves to undefined when the server answers, or to its last message if it never did. */
async function waitUntilReady(
  url: string,
  giveUp: AbortSignal,
  onProgress: (line: string) => void,
): Promise<string | undefined> {
  const startedAtMs = performance.now();
  let saidAtMs = startedAtMs;
  for (;;) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
    client.on('error', () => {});
    const refusal = await client.connect().then(
      () => undefined,
      (error: Error) => error.message,
    );
    await client.end().catch(() => {});
    const nowMs = performance.now();
    if (refusal === undefined || giveUp.aborted) return refusal;
    if (nowMs - startedAtMs > READY_DEADLINE_MS)
      return `no answer for ${READY_DEADLINE_MS / 1000} s: ${refusal}`;
    if (nowMs - saidAtMs > 2_000) {
      saidAtMs = nowMs;
      onProgress(`waiting for Postgres: ${refusal}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

/** The wanted port when it is free, else a free one; never 5432, the usual port of other Postgres servers. */
async function findFreePort(wanted: number): Promise<number> {
  const listener = createServer();
  listener.listen(wanted, '127.0.0.1');
  const isFree = await once(listener, 'listening').then(
    () => true,
    () => false,
  );
  if (!isFree) return findFreePort(0);
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, 'close');
  return port === 5432 ? findFreePort(0) : port;
}

async function createMissingDatabase(maintenanceUrl: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: maintenanceUrl });
  await client.connect();
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [name]);
    if (rowCount === 0) await client.query(`create database ${pg.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
}
