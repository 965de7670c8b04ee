/**
 * Surroundings of a benchmark: a Postgres, a Redis and our services. The Postgres has our schema and the
 * demo workspace, the Redis has `appendfsync always`, and the services are processes of their own. All is
 * in a folder that is removed afterwards.
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
import {
  INTAKE_ARGUMENTS,
  QUICK_START,
  startChildServer,
  type ChildServer,
} from './child-server.ts';

export interface World {
  readonly directory: string;
  readonly database: Database;
  readonly databaseUrl: string;
  readonly redis: Redis;
  readonly redisServer: RedisServer;
  readonly versions: { readonly postgres: string; readonly redis: string };
  /** A further database beside the first, migrated and seeded alike. */
  addDatabase(name: string): Promise<{ readonly database: Database; readonly databaseUrl: string }>;
  /** Starts a service on the database, without Redis. `environment` overrides both. */
  startService(
    service: Service,
    port: number,
    environment?: Record<string, string>,
    processCount?: number,
  ): Promise<ChildServer>;
  /** Runs `close` at the end, in the reverse order of these calls. */
  onClose(close: () => unknown): void;
}

export type Service = 'intake' | 'worker' | 'api';

/**
 * Runs `run` in a world of its own and takes it down, also after an error.
 *
 * @param durability of Postgres: `full` if its writes are measured, `none` if it only has to be there.
 * @param keptDirectory folder in which Postgres' data stays for the next run; made when missing.
 * @param postgresSettings in place of the settings of the embedded Postgres, or beside them.
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
          nodeArguments: [QUICK_START, ...(service === 'intake' ? INTAKE_ARGUMENTS : [])],
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
