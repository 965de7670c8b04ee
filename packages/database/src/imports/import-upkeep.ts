/**
 * Ends imports that were left alone, and forgets old ones. Used by the maintenance of the worker.
 *
 * Beside `imports.ts`.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { IS_IMPORT_UNFINISHED, IS_LEASE_OVER } from './imports.ts';

/** Ends uploads without a piece for this time: the sender or the process that took it died. By `imports_unfinished`. */
export async function failAbandonedUploads(
  database: DatabaseOrTransaction,
  sinceMs: number,
  nowMs: number,
): Promise<void> {
  await sql`
    with ended as (
      update imports set state = 'failed', error = 'the file was not sent to its end', updated_at = ${new Date(nowMs)}
      where state = 'preprocessing' and data_file_url is null and updated_at < ${new Date(sinceMs)}
      returning environment_id, import_id
    )
    delete from import_chunks c using ended e
    where c.environment_id = e.environment_id and c.import_id = e.import_id`.execute(database);
}

/**
 * Ends imports that are older than this age and have no worker: they will never end by themselves, and hold their
 * bytes. By `imports_unfinished`.
 *
 * One whose batch is in progress though its lease is over is left for the next look: all workers come by here. An import that is taken up meanwhile has a lease and stays, so no piece can come
 * after the bytes are deleted.
 */
export async function failStuckImports(
  database: DatabaseOrTransaction,
  agedDays: number,
  nowMs: number,
): Promise<void> {
  const now = new Date(nowMs);
  await sql`
    with aged as materialized (
      select environment_id, import_id from imports
      where ${IS_IMPORT_UNFINISHED} and ${IS_LEASE_OVER}
        and (state <> 'preprocessing' or data_file_url is not null)
        and created_at < ${now}::timestamptz - make_interval(days => ${agedDays}::int)
      for update skip locked
    ), ended as (
      update imports i set state = 'failed', error = ${`not brought to its end in ${agedDays} days; send it again`},
             updated_at = ${now}
      from aged a where i.environment_id = a.environment_id and i.import_id = a.import_id
      returning i.environment_id, i.import_id
    )
    delete from import_chunks c using ended e
    where c.environment_id = e.environment_id and c.import_id = e.import_id`.execute(database);
}

/**
 * Forgets old imports that have ended, with the problems of their rows. Their events stay. Reads the whole table, a row
 * a file: run it every few hours.
 *
 * @returns how many went; `limit` means that there may be more.
 */
export async function deleteOldImports(
  database: DatabaseOrTransaction,
  keptDays: number,
  nowMs: number,
  limit: number,
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from imports where (environment_id, import_id) in (
      select environment_id, import_id from imports
      where state in ('imported', 'failed', 'canceled')
        and updated_at < ${new Date(nowMs)}::timestamptz - make_interval(days => ${keptDays}::int)
      limit ${limit}
    )`.execute(database);
  return Number(numAffectedRows);
}
