/**
 * What a benchmark runs in: a Postgres with our schema and the demo workspace, a Redis that keeps what it
 * answered (`appendfsync always`), our services as processes of their own; all of it in a folder that is
 * gone afterwards.
 */
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from '@sluice/database/embedded/embedded-postgres';
import { migrate } from '@sluice/database/schema/migrate';
import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { migrateQueues } from '@sluice/platform/queue/queue';
import { startRedisServer, type RedisServer } from '@sluice/platform/testing/redis-server';
import { Redis } from 'ioredis';
import { sql } from 'kysely';
import { INTAKE_ARGUMENTS, startChildServer, type ChildServer } from './child-server.ts';

export interface World {
  readonly directory: string;
  readonly database: Database;
  readonly databaseUrl: string;
  readonly redis: Redis;
  readonly redisServer: RedisServer;
  readonly versions: { readonly postgres: string; readonly redis: string };
  /** A further database beside the first, migrated and seeded alike. */
  addDatabase(name: string): Promise<{ readonly database: Database; readonly databaseUrl: string }>;
  /** Starts a service on the database (or what `environment` says instead), without Redis unless told. */
  startService(
    service: Service,
    port: number,
    environment?: Record<string, string>,
    processCount?: number,
  ): Promise<ChildServer>;
  /** Has `close` run at the end; the last one told runs first. */
  onClose(close: () => unknown): void;
}

export type Service = 'intake' | 'worker' | 'api';

/**
 * Runs `run` in a world of its own and takes it down, whatever comes of it.
 *
 * @param durability of Postgres: `full` if its writes are measured, `none` if it only has to be there.
 * @param keptDirectory where Postgres' data stays for the next run; made when missing.
 * @param postgresSettings in place of those of the embedded Postgres, or beside them.
 */
export async function withWorld<Result>(
  durability: 'full' | 'none',
  run: (world: World) => Promise<Result>,
  {
    keptDirectory,
    postgresSettings = {},
  }: {
    readonly keptDirectory?: string;
    readonly postgresSettings?: Readonly<Record<string, string>>;
  } = {},
): Promise<Result> {
  const closers: (() => unknown)[] = [];
  const onClose = (close: () => unknown): void => void closers.push(close);
  try {
    const directory = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
    onClose(() => rm(directory, { recursive: true, force: true }));
    // Postgres does not run as root; its own account must reach its folder.
    await chmod(directory, 0o711);
    if (keptDirectory !== undefined) await mkdir(keptDirectory, { recursive: true });
    const postgres = await startEmbeddedPostgres({
      directory: keptDirectory ?? join(directory, 'postgres'),
      durability,
      settings: postgresSettings,
      onProgress: (line) => console.log(line),
    });
    onClose(() => (keptDirectory === undefined ? postgres.remove() : postgres.stop()));
    const addDatabase = async (name: string) => {
      const opened = await openSeeded(postgres, name);
      onClose(() => opened.database.destroy());
      return opened;
    };
    const { database, databaseUrl } = await addDatabase('sluice');
    const redisServer = await startRedisServer({
      directory: join(directory, 'redis'),
      appendFsync: 'always',
      extraArguments: ['--auto-aof-rewrite-percentage', '0'],
    });
    onClose(() => redisServer.stop());
    const redis = new Redis(redisServer.url);
    onClose(() => redis.disconnect());
    return await run({
      directory,
      database,
      databaseUrl,
      redis,
      redisServer,
      versions: { postgres: await postgresVersion(database), redis: await redisVersion(redis) },
      addDatabase,
      async startService(service, port, environment = {}, processCount = 1) {
        const server = await startChildServer({
          file: join(import.meta.dirname, `../../packages/${service}/src/main.ts`),
          environment: {
            DATABASE_URL: databaseUrl,
            LOG_LEVEL: 'warn',
            API_KEY_RATE_LIMIT_PER_SECOND: '0',
            [`${service.toUpperCase()}_PORT`]: String(port),
            ...environment,
          },
          url: `http://127.0.0.1:${port}`,
          readyPath: '/livez',
          processCount,
          nodeArguments: service === 'intake' ? INTAKE_ARGUMENTS : [],
        });
        onClose(() => server.stop());
        return server;
      },
      onClose,
    });
  } finally {
    for (const close of closers.toReversed()) await close();
  }
}

async function openSeeded(postgres: EmbeddedPostgres, name: string) {
  await postgres.createDatabase(name);
  const databaseUrl = postgres.url(name);
  const database = createDatabase({
    url: databaseUrl,
    poolMax: 4,
    applicationName: 'bench',
    onError: () => undefined,
  });
  await migrate(database);
  await migrateQueues(databaseUrl);
  await seedDemoWorkspace(database);
  return { database, databaseUrl };
}

async function postgresVersion(database: Database): Promise<string> {
  const { rows } = await sql<{ version: string }>`
    select current_setting('server_version') as version`.execute(database);
  return rows[0]?.version ?? 'unknown';
}

async function redisVersion(redis: Redis): Promise<string> {
  return /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? 'unknown';
}
