/** The bytes of a file on its way in: pieces of about a megabyte, in order, until the import has ended. */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';
import type { ImportKey } from './imports.ts';

/**
 * Keeps the next piece of a file that is being sent or fetched, and says in the import that it is alive.
 * By the primary keys. An empty piece only says the latter.
 *
 * @param fencing - of the worker that fetches it; 0 of a file that is sent to us.
 * @returns false where the import has ended, or is another's by now; then nothing is kept.
 */
export async function appendImportChunk(
  database: DatabaseOrTransaction,
  { environmentId, importId }: ImportKey,
  fencing: number,
  bytes: Buffer,
  leaseMs: number,
  nowMs: number,
): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    with grown as (
      update imports set size_bytes = size_bytes + ${bytes.length}::int, updated_at = ${new Date(nowMs)},
             lease_until = ${new Date(nowMs + leaseMs)}
      where environment_id = ${environmentId} and import_id = ${importId} and state = 'preprocessing'
        and fencing = ${fencing}::bigint
      returning environment_id, import_id, size_bytes - ${bytes.length}::int as first_byte
    )
    insert into import_chunks (environment_id, import_id, first_byte, bytes)
    select environment_id, import_id, first_byte, ${bytes}::bytea from grown
    on conflict (environment_id, import_id, first_byte) do update set bytes = excluded.bytes`.execute(
    database,
  );
  return numAffectedRows === 1n;
}

/** Forgets what an earlier try to fetch the file brought. */
export async function clearImportChunks(
  database: DatabaseOrTransaction,
  { environmentId, importId }: ImportKey,
  fencing: number,
): Promise<void> {
  await sql`
    with emptied as (
      update imports set size_bytes = 0
      where environment_id = ${environmentId} and import_id = ${importId} and fencing = ${fencing}::bigint
      returning environment_id, import_id
    )
    delete from import_chunks c using emptied e
    where c.environment_id = e.environment_id and c.import_id = e.import_id`.execute(database);
}

/** The piece that holds this byte, from it on; undefined behind the last. By the primary key, backwards. */
export async function readImportChunk(
  database: DatabaseOrTransaction,
  { environmentId, importId }: ImportKey,
  fromByte: number,
): Promise<Buffer | undefined> {
  const { rows } = await sql<{ firstByte: string; bytes: Buffer }>`
    select first_byte as "firstByte", bytes from import_chunks
    where environment_id = ${environmentId} and import_id = ${importId} and first_byte <= ${fromByte}::bigint
    order by first_byte desc
    limit 1`.execute(database);
  const [chunk] = rows;
  const rest = chunk?.bytes.subarray(fromByte - Number(chunk.firstByte));
  return rest?.length === 0 ? undefined : rest;
}
