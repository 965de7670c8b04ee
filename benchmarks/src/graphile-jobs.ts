/**
 * graphile-worker, the comparator for jobs in Postgres: one job an event, as in a project with Postgres
 * and no pipeline. Its own library in its recommended bulk form: jobs added by `add_jobs`, fetched 500
 * at a time (`localQueue`), their completion batched.
 */
import type { Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';

export const STORE_EVENT = 'store-event';
const JOBS_A_STATEMENT = 5_000;

/** Content of a job: the event of the other side, with the person already found. */
export interface EventJob {
  readonly personId: number;
  readonly eventId: string;
  readonly occurredAt: string;
  readonly data: object;
}

/** Adds so many jobs. Its schema must be there (`graphile-worker-loop.ts` makes it). */
export async function addEventJobs(
  database: Database,
  count: number,
  { data, isLater = false }: { readonly data: object; readonly isLater?: boolean },
): Promise<void> {
  for (let from = 1; from <= count; from += JOBS_A_STATEMENT) {
    const to = Math.min(count, from + JOBS_A_STATEMENT - 1);
    await sql`
      select count(*) from graphile_worker.add_jobs(array(
        select json_populate_record(null::graphile_worker.job_spec, json_build_object(
                 'identifier', ${STORE_EVENT}::text,
                 'run_at', now() + ${isLater ? '7 days' : '0'}::interval,
                 'payload', json_build_object('personId', n % 1000, 'eventId', 'job-' || n,
                   'occurredAt', '2026-11-20T10:00:00Z', 'data', ${JSON.stringify(data)}::json)))
          from generate_series(${from}::int, ${to}::int) n))`.execute(database);
  }
}
