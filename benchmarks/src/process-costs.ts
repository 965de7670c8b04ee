/**
 * Costs of groups of processes and their stores: CPU, memory, statements, commits, syncs, commands. From `/proc` and the
 * stores.
 */
import { readFile, readdir } from 'node:fs/promises';
import type { Database } from '@sluice/database/connection/connection';
import type { Redis } from 'ioredis';
import { sql } from 'kysely';

const CLOCK_TICKS_PER_SECOND = 100;
const STATEMENT_TEXT_MAX = 160;

/** Fields of `/proc/<pid>/stat` behind the name, from 0. */
const PARENT = 1;
/** User and system time of the process, then of children that have ended and were waited for. */
const CPU_TIMES = [11, 12, 13, 14];

async function statOf(pid: number): Promise<readonly number[] | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return stat
    ?.slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
}

/** The processes and all that they have started. */
async function familyOf(roots: readonly number[]): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const childrenOf = new Map<number, number[]>();
  for (const pid of pids) {
    const parent = (await statOf(pid))?.[PARENT];
    if (parent !== undefined) childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), pid]);
  }
  const family = [...roots];
  for (const pid of family) family.push(...(childrenOf.get(pid) ?? []));
  return family;
}

/** CPU seconds of processes and all that they have started, also of ended ones. */
export async function familyCpuSeconds(roots: readonly number[]): Promise<number> {
  let ticks = 0;
  for (const pid of await familyOf(roots)) {
    const stat = (await statOf(pid)) ?? [];
    for (const field of CPU_TIMES) ticks += stat[field] ?? 0;
  }
  return ticks / CLOCK_TICKS_PER_SECOND;
}

/** Memory of processes and all that they have started. Shared pages count once (PSS). */
export async function familyMemoryBytes(roots: readonly number[]): Promise<number> {
  let bytes = 0;
  for (const pid of await familyOf(roots)) {
    const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
    bytes += Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1024;
  }
  return bytes;
}

/** Of the stores. */
export interface Counters {
  readonly statements: number;
  readonly commits: number;
  readonly walSyncs: number;
  readonly redisCommands: number;
  readonly redisScripts: number;
  /** Postgres' write-ahead log. */
  readonly walBytes: number;
  /** Tables and indexes, by their files, which grow by 8 KB at a time. */
  readonly databaseBytes: number;
  /** Bytes sent to Redis. It keeps and appends to its log about as many. */
  readonly redisBytes: number;
}

type PostgresCounters = Pick<
  Counters,
  'statements' | 'commits' | 'walSyncs' | 'walBytes' | 'databaseBytes'
>;

/** Settings of a Postgres whose statements {@link readCounters} can count. */
export const COUNTING_SETTINGS = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track_utility': 'off',
} as const;

/** All since the stores began. This function's own five statements and two commands, about, are included. */
export async function readCounters(database: Database, redis: Redis): Promise<Counters> {
  const { rows } = await sql<PostgresCounters>`
    select (select sum(calls) from pg_stat_statements)::float8 as statements,
           (select sum(xact_commit) from pg_stat_database)::float8 as commits,
           (select sum(fsyncs) from pg_stat_io where object = 'wal')::float8 as "walSyncs",
           pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as "walBytes",
           pg_database_size(current_database())::float8 as "databaseBytes"`.execute(database);
  const [row] = rows;
  const stats = await redis.info('stats');
  const commands = await redis.info('commandstats');
  const scripts = [...commands.matchAll(/cmdstat_(?:evalsha|eval):calls=(\d+)/g)];
  return {
    statements: row?.statements ?? NaN,
    commits: row?.commits ?? NaN,
    walSyncs: row?.walSyncs ?? NaN,
    walBytes: row?.walBytes ?? NaN,
    databaseBytes: row?.databaseBytes ?? NaN,
    redisCommands: Number(/total_commands_processed:(\d+)/.exec(stats)?.[1]),
    redisBytes: Number(/total_net_input_bytes:(\d+)/.exec(stats)?.[1]),
    redisScripts: scripts.reduce((sum, [, calls]) => sum + Number(calls), 0),
  };
}

/** The postmaster, whose children all of Postgres' processes are. */
export async function findPostmaster(database: Database): Promise<number> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(database);
  const parent = (await statOf(rows[0]?.pid ?? NaN))?.[PARENT];
  if (parent === undefined) throw new Error('Postgres runs on another machine');
  return parent;
}

/** Calls so far of each statement and of each Redis command. */
export async function readCalls(database: Database, redis: Redis): Promise<Map<string, number>> {
  const calls = new Map<string, number>();
  const { rows } = await sql<{ query: string; calls: number }>`
    select query, sum(calls)::float8 as calls from pg_stat_statements group by query`.execute(
    database,
  );
  for (const { query, calls: count } of rows)
    calls.set(`sql ${query.replaceAll(/\s+/g, ' ').slice(0, STATEMENT_TEXT_MAX)}`, count);
  const commands = await redis.info('commandstats');
  for (const [, name = '', count] of commands.matchAll(/cmdstat_([^:]+):calls=(\d+)/g))
    calls.set(`redis ${name}`, Number(count));
  return calls;
}
