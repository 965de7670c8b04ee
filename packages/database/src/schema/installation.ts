/** Decisions that hold for the whole installation and can never change: the first process makes them. */
import { AppError } from '@sluice/domain/values/errors';
import { sql } from 'kysely';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';
import {
  databaseUnavailable,
  isDatabaseAway,
  requireDatabase,
} from '../connection/database-away.ts';
import { isDistributed } from '../connection/tenant-statements.ts';
import { checkSchema } from './schema-version.ts';

/**
 * For the start of a process: may it run on this database?
 *
 * @throws AppError MIGRATION_MISMATCH if the schema is not one that it can use.
 * @throws AppError CONFIG_INVALID if the number of shards is not the installation's.
 * @throws AppError DATABASE_UNAVAILABLE if Postgres cannot be asked: it is away, or refuses the login.
 */
export async function joinInstallation(database: Database, shardCount: number): Promise<void> {
  await requireDatabase(database);
  try {
    await checkSchema(database);
    await agreeOnShardCount(database, shardCount);
  } catch (error) {
    throw isDatabaseAway(error) ? databaseUnavailable(error) : error;
  }
}

/**
 * Keeps a process with another number of shards from starting: it would put events into queues that no worker reads, or
 * leave queues unread. By the primary key.
 *
 * @throws AppError CONFIG_INVALID
 */
export async function agreeOnShardCount(
  database: DatabaseOrTransaction,
  shardCount: number,
): Promise<void> {
  const { rows } = await sql<{ shardCount: number }>`
    insert into installation (shard_count) values (${shardCount})
    on conflict (is_only) do update set shard_count = installation.shard_count
    returning shard_count as "shardCount"`.execute(database);
  const agreed = rows[0]?.shardCount;
  if (agreed !== shardCount) {
    throw new AppError(
      'CONFIG_INVALID',
      `SHARD_COUNT is ${shardCount}, but this database was made with ${agreed}; it can never change, so set SHARD_COUNT to ${agreed}`,
    );
  }
}

/**
 * For the start of a process on Citus. Queues in Postgres would be tables of the coordinator alone, and take it up: each
 * commit batch goes through them. People are counted by this code once the tables are on the nodes, and by triggers before
 * that (`distribute.ts`). A process that started in between would count each person twice.
 *
 * @param redisUrl - `REDIS_URL`; undefined if the queues are in Postgres.
 * @throws AppError CONFIG_INVALID if the queues would be on Citus.
 * @throws AppError MIGRATION_MISMATCH if the tables are not on the nodes yet.
 */
export async function requireReadyCitus(
  database: DatabaseOrTransaction,
  redisUrl: string | undefined,
): Promise<void> {
  if (!(await isDistributed(database))) return;
  if (redisUrl === undefined)
    throw new AppError(
      'CONFIG_INVALID',
      'this database is on Citus, so the queues must be in Redis; set REDIS_URL, then start again',
    );
  const { rows } = await sql<{ isWaiting: boolean }>`
    select exists (
      select from pg_trigger where tgrelid = 'people'::regclass and tgname = 'people_inserted'
    ) as "isWaiting"`.execute(database);
  if (rows[0]?.isWaiting === true)
    throw new AppError(
      'MIGRATION_MISMATCH',
      'this database has the extension citus, but its tables are not on the nodes yet; run npm run migrate, then start again',
    );
}

/** Undefined until the first intake or worker has started. By the primary key. */
export async function findShardCount(database: DatabaseOrTransaction): Promise<number | undefined> {
  const { rows } = await sql<{ shardCount: number }>`
    select shard_count as "shardCount" from installation`.execute(database);
  return rows[0]?.shardCount;
}
