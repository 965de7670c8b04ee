/**
 * Living worker processes, and the locks of dead ones.
 *
 * Each worker process holds an advisory lock in a session of its own (`worker/src/process/worker-presence.ts`). A
 * process that is killed closes its connections, Postgres ends the session, and the lock is free. Others see that
 * within a second; leases and locks of the broker would run on for 15 s. A pooler that keeps sessions releases advisory
 * locks between two clients. If a host disappears without closing them, the session lives on, and the leases count as
 * before.
 *
 * The table has a row a process, so each statement reads all of it.
 *
 * After: `worker/src/maintenance/departed-workers.ts`.
 */
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import type { Session } from '../connection/held-session.ts';

/** The first half of the advisory lock; the second is the number of the process. */
const PRESENCE_LOCK = 0x51_1c_e0_01;

/** The number of a process from its start to its end. */
export async function newProcessId(session: Session): Promise<number> {
  const { rows } = await session.query<{ id: number }>(
    `select nextval('worker_process_ids')::int as id`,
  );
  return (rows[0] as { id: number }).id;
}

/**
 * Makes a process present for as long as the session lasts.
 *
 * @returns false if an earlier session of this process is still there: `endEarlierSession`, then again.
 */
export async function enter(
  session: Session,
  processId: number,
  brokerWorkerIds: readonly string[],
): Promise<boolean> {
  const { rows } = await session.query<{ isHeld: boolean }>(
    `select pg_try_advisory_lock($1, $2) as "isHeld"`,
    [PRESENCE_LOCK, processId],
  );
  if (rows[0]?.isHeld !== true) return false;
  await tellBrokerWorkers(session, processId, brokerWorkerIds);
  return true;
}

/** Its workers of the broker, whose locks are released when it is dead. */
export async function tellBrokerWorkers(
  session: Session,
  processId: number,
  brokerWorkerIds: readonly string[],
): Promise<void> {
  await session.query(
    `insert into worker_processes (process_id, postmaster_started_at, broker_worker_ids)
     values ($1, pg_postmaster_start_time(), $2)
     on conflict (process_id) do update
        set postmaster_started_at = excluded.postmaster_started_at, broker_worker_ids = excluded.broker_worker_ids`,
    [processId, brokerWorkerIds],
  );
}

/** A session that the process has lost may live on in Postgres, which does not notice a broken network. */
export async function endEarlierSession(session: Session, processId: number): Promise<void> {
  await session.query(
    `select pg_terminate_backend(pid) from pg_locks
      where locktype = 'advisory' and classid = $1 and objid = $2 and pid <> pg_backend_pid()
        and database = (select oid from pg_database where datname = current_database())`,
    [PRESENCE_LOCK, processId],
  );
}

/** A process that ends in good order leaves no work behind. */
export async function leave(session: Session, processId: number): Promise<void> {
  await session.query(`delete from worker_processes where process_id = $1`, [processId]);
}

/** After a restart of Postgres its processes have so long to come back. */
const RETURN_AFTER_RESTART = sql`interval '30 seconds'`;

/** Of a row of `worker_processes`: its lock is free. */
export const IS_DEPARTED: RawBuilder<unknown> = sql`(
  (postmaster_started_at = pg_postmaster_start_time()
   or clock_timestamp() > pg_postmaster_start_time() + ${RETURN_AFTER_RESTART})
  and not exists (
    select from pg_locks
     where locktype = 'advisory' and classid = ${sql.lit(PRESENCE_LOCK)} and objid = process_id and granted
       and database = (select oid from pg_database where datname = current_database())))`;

export interface DepartedWorker {
  readonly processId: number;
  readonly brokerWorkerIds: readonly string[];
}

/**
 * Worker processes without a session. One that lives and has just lost its session is among them for a moment: only a
 * process that is in two lists, half a second apart, is dead.
 */
export async function listDepartedWorkers(
  database: DatabaseOrTransaction,
): Promise<readonly DepartedWorker[]> {
  const { rows } = await sql<DepartedWorker>`
    select process_id as "processId", broker_worker_ids as "brokerWorkerIds" from worker_processes
     where ${IS_DEPARTED} order by process_id`.execute(database);
  return rows;
}

/**
 * Ends the leases of the lanes that dead processes held. Reads all lanes, in the order of their key: an index of their
 * holders would be written with each claim, and this runs once for a process that was killed. One that has come back
 * since it was listed keeps its leases.
 *
 * @returns how many lanes.
 */
export async function releaseLanesOf(
  database: DatabaseOrTransaction,
  processIds: readonly number[],
): Promise<number> {
  const { rows } = await sql`
    with held as (
      select environment_id, webhook_id from lanes
       where holder_process_id = any(${processIds}::int[]) and lease_until > clock_timestamp()
         and not exists (select from worker_processes where process_id = holder_process_id and not ${IS_DEPARTED})
       order by environment_id, webhook_id
         for no key update
    )
    update lanes set lease_until = clock_timestamp() from held
     where lanes.environment_id = held.environment_id and lanes.webhook_id = held.webhook_id
    returning lanes.webhook_id`.execute(database);
  return rows.length;
}

/** Whose work has been taken up. One that has come back stays: its row is needed when it dies. */
export async function forgetWorkers(
  database: DatabaseOrTransaction,
  processIds: readonly number[],
): Promise<void> {
  await sql`
    delete from worker_processes where process_id = any(${processIds}::int[]) and ${IS_DEPARTED}`.execute(
    database,
  );
}
