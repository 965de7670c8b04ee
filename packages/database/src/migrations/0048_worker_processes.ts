/**
 * Worker processes, and the holders of lanes.
 *
 * So the work of a process that was killed is taken up at once and not when its leases end
 * (`maintenance/worker-processes.ts`).
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const workerProcesses: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`create sequence worker_process_ids as int cycle`.execute(database);
    await sql`
      create table worker_processes (
        process_id int primary key,
        -- The server on which its session was opened: a restart ends the sessions of living processes too.
        postmaster_started_at timestamptz not null,
        broker_worker_ids text[] collate "C" not null
      )`.execute(database);
    await sql`alter table lanes add column holder_process_id int`.execute(database);
  },
};
