/**
 * Processes of the installation with their state, for `GET /v1/fleet`. A process writes its row every ten seconds
 * (`platform/src/telemetry/heartbeat.ts`), in one statement that also deletes the rows of killed processes. The table
 * has no tenant, because a process serves all of them.
 *
 * The table has a row a process, so each statement reads all of it. Ages are by Postgres' clock alone.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export type ServiceName = 'intake' | 'worker' | 'api';

/** A process's report about itself; fields that its service does not have are left out. */
export interface ProcessReport {
  /** Lead of its clock over Postgres' clock. Negative: it is behind. Null: not measured. */
  readonly clockAheadMs: number | null;
  /** Null: it does not look. */
  readonly isBrokerAnswering?: boolean;
  /** Queues whose head has been the same for long. */
  readonly stuckQueues?: readonly string[];
  /** The local disk buffer of an intake. */
  readonly spill?: {
    readonly sizeBytes: number;
    readonly sizeBytesMax: number;
    readonly commitBatchCount: number;
    /** 0: it is empty. */
    readonly oldestAgeMs: number;
  };
}

export interface ProcessIdentity {
  readonly processId: string;
  readonly service: ServiceName;
  readonly version: string;
  readonly host: string;
  readonly pid: number;
}

/** Six beats: longer than a restart of Postgres, shorter than anybody looks for a process that is gone. */
const GONE_AFTER_SECONDS = 60;

/** Locks no row of others that somebody else has, so that processes never wait for each other here. */
export async function writeHeartbeat(
  database: DatabaseOrTransaction,
  { processId, service, version, host, pid }: ProcessIdentity,
  report: ProcessReport,
): Promise<void> {
  await sql`
    with gone as (
      delete from process_heartbeats where process_id in (
        select process_id from process_heartbeats
         where beat_at < clock_timestamp() - make_interval(secs => ${GONE_AFTER_SECONDS}) and process_id <> ${processId}
           for update skip locked))
    insert into process_heartbeats (process_id, service, version, host, pid, beat_at, report)
    values (${processId}, ${service}, ${version}, ${host}, ${pid}, clock_timestamp(), ${JSON.stringify(report)}::jsonb)
    on conflict (process_id) do update set beat_at = excluded.beat_at, report = excluded.report`.execute(
    database,
  );
}

/** Of a process that ends in good order. */
export async function deleteHeartbeat(
  database: DatabaseOrTransaction,
  processId: string,
): Promise<void> {
  await sql`delete from process_heartbeats where process_id = ${processId}`.execute(database);
}

/** For `startHeartbeat` of a process of the service. */
export const heartbeatOf = (
  database: DatabaseOrTransaction,
  identity: ProcessIdentity,
  report: () => ProcessReport,
) => ({
  beat: () => writeHeartbeat(database, identity, report()),
  leave: () => deleteHeartbeat(database, identity.processId),
});

export interface Heartbeat extends ProcessIdentity {
  readonly startedAt: Date;
  readonly beatAgeMs: number;
  readonly report: ProcessReport;
}

/** By service, the oldest first. Dead processes are left out, even before another process deletes them. */
export async function listHeartbeats(database: DatabaseOrTransaction): Promise<Heartbeat[]> {
  const { rows } = await sql<Heartbeat>`
    select process_id as "processId", service, version, host, pid, started_at as "startedAt", report,
           (extract(epoch from clock_timestamp() - beat_at) * 1000)::int as "beatAgeMs"
      from process_heartbeats
     where beat_at > clock_timestamp() - make_interval(secs => ${GONE_AFTER_SECONDS})
     order by service, started_at, process_id`.execute(database);
  return rows;
}
