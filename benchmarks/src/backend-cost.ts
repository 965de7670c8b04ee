/**
 * Cost of one piece of work in one Postgres backend: CPU from `/proc`, pages and log from its own
 * counters (Postgres 18). CPU shows a higher cost. Pages touched, pages outside of Postgres' shared
 * buffers and pages logged whole show its cause.
 */
import { readFile } from 'node:fs/promises';
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';

export const COST_KINDS = ['cpuUs', 'pages', 'pagesRead', 'walBytes', 'walPages'] as const;
export type CostKind = (typeof COST_KINDS)[number];

/** `pagesRead` of `pages` came from outside the shared buffers; `walPages` went into the log whole. */
export type BackendCost = Readonly<Record<CostKind, number>>;

export interface BackendMeter {
  /** Runs it and returns its cost too. Its transaction, if it has one, has ended then. */
  measure<Result>(run: () => Promise<Result>): Promise<{ result: Result; cost: BackendCost }>;
}

/**
 * @param measured - one connection, which does the work.
 * @param watching - another, which reads its counters.
 */
export async function openBackendMeter(
  measured: Database,
  watching: Database,
): Promise<BackendMeter> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(measured);
  const pid = rows[0]?.pid ?? 0;
  return {
    async measure(run) {
      const before = await readCounters(measured, watching, pid);
      const cpuBefore = await cpuMicrosecondsOf(pid);
      const result = await run();
      const cpuUs = (await cpuMicrosecondsOf(pid)) - cpuBefore;
      const after = await readCounters(measured, watching, pid);
      return {
        result,
        cost: {
          cpuUs,
          pages: after.pages - before.pages,
          pagesRead: after.pagesRead - before.pagesRead,
          walBytes: after.walBytes - before.walBytes,
          walPages: after.walPages - before.walPages,
        },
      };
    },
  };
}

/** Time on a core, in µs. `/proc/<pid>/stat` counts in hundredths of a second. */
async function cpuMicrosecondsOf(pid: number): Promise<number> {
  return Number((await readFile(`/proc/${pid}/schedstat`, 'utf8')).split(' ')[0]) / 1_000;
}

/** A backend publishes its counters at most once a second, unless a statement asks for them. */
async function readCounters(
  measured: Database,
  watching: Database,
  pid: number,
): Promise<Omit<BackendCost, 'cpuUs'>> {
  await sql`select pg_stat_force_next_flush()`.execute(measured);
  const { rows } = await sql<Omit<BackendCost, 'cpuUs'>>`
    select io.pages, io.pages_read as "pagesRead", wal.wal_bytes::float8 as "walBytes",
           wal.wal_fpi::float8 as "walPages"
      from (select coalesce(sum(hits + reads), 0)::float8 as pages, coalesce(sum(reads), 0)::float8 as pages_read
              from pg_stat_get_backend_io(${pid}::int) where object = 'relation') io,
           pg_stat_get_backend_wal(${pid}::int) wal`.execute(watching);
  const [counters] = rows;
  if (!counters) throw new Error('Postgres does not count for this backend');
  return counters;
}
