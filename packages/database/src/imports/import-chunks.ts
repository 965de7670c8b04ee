/** The bytes of a file on its way in: pieces of about a megabyte, in order, until the import has ended. */
import { mayTake } from '@sluice/domain/values/fair-share';
import { sql } from 'kysely';
import { isOnlyWorkspace } from '../accounts/environments.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { heldFor, IS_IMPORT_UNFINISHED, NOT_HELD, type ImportKey } from './imports.ts';

export interface ImportPiece {
  /** Of the worker that fetches it; 0 of a file that is sent to us. */
  readonly fencing: number;
  readonly bytes: Buffer;
  readonly leaseMs: number;
  readonly nowMs: number;
  /**
   * Bytes of all unfinished imports of the workspace together. They are summed without a lock, so each file under way
   * may exceed it by one piece.
   */
  readonly unfinishedSizeBytesMax: number;
  readonly storage: ImportStorage;
}

/** The bound on the bytes of all unfinished imports of all workspaces, which share it. */
export interface ImportStorage {
  readonly sizeBytesMax: number;
  readonly sharePercent: number;
}

/**
 * `ended`: the import has ended, or another worker has it. `no_room`: the workspace's imports take all its capacity.
 * `no_storage`: the imports of all workspaces do, except the part that is reserved for workspaces below their share.
 */
export type PieceOutcome = 'kept' | 'ended' | 'no_room' | 'no_storage';

/**
 * Whether so many bytes more of a workspace's files may be stored. Summed without a lock: each file under way may exceed it
 * by one piece. Index: `imports_unfinished`, all of it.
 */
export async function hasImportStorage(
  database: DatabaseOrTransaction,
  environmentId: number,
  sizeBytes: number,
  { sizeBytesMax: capacity, sharePercent }: ImportStorage,
): Promise<boolean> {
  const { rows } = await sql<{ own: string; total: string }>`
    select coalesce(sum(size_bytes) filter (where environment_id = ${environmentId}), 0) as own,
           coalesce(sum(size_bytes), 0) as total
      from imports where ${IS_IMPORT_UNFINISHED}`.execute(database);
  const [sizes = { own: '0', total: '0' }] = rows;
  return mayTake(
    { capacity, sharePercent },
    {
      size: sizeBytes,
      ownSize: Number(sizes.own),
      totalSize: Number(sizes.total),
      isAlone: await isOnlyWorkspace(database, environmentId),
      // Files leave when they are imported, even if other files were refused.
      leastRefusedSize: Infinity,
    },
  );
}

/**
 * Keeps the next piece of a file that is being sent or fetched, and renews the import's lease. By the primary keys;
 * `imports_unfinished` for the sum. An empty piece only renews the lease.
 */
export async function appendImportChunk(
  database: DatabaseOrTransaction,
  { environmentId, importId }: ImportKey,
  { fencing, bytes, leaseMs, nowMs, unfinishedSizeBytesMax, storage }: ImportPiece,
): Promise<PieceOutcome> {
  if (bytes.length > 0 && !(await hasImportStorage(database, environmentId, bytes.length, storage)))
    return 'no_storage';
  const isOurs = sql`environment_id = ${environmentId} and import_id = ${importId} and state = 'preprocessing'
        and fencing = ${fencing}::bigint`;
  const { numAffectedRows = 0n } = await sql`
    with grown as (
      update imports set size_bytes = size_bytes + ${bytes.length}::int, updated_at = ${new Date(nowMs)},
             ${heldFor(leaseMs)}
      where ${isOurs} and ${unfinishedSizeBytesMax}::bigint >= ${bytes.length}::int + (
        select sum(size_bytes) from imports where environment_id = ${environmentId} and ${IS_IMPORT_UNFINISHED})
      returning environment_id, import_id, size_bytes - ${bytes.length}::int as first_byte
    )
    insert into import_chunks (environment_id, import_id, first_byte, bytes)
    select environment_id, import_id, first_byte, ${bytes}::bytea from grown
    on conflict (environment_id, import_id, first_byte) do update set bytes = excluded.bytes`.execute(
    database,
  );
  if (numAffectedRows === 1n) return 'kept';
  const { rows } = await sql`select from imports where ${isOurs}`.execute(database);
  return rows.length === 0 ? 'ended' : 'no_room';
}

/** Forgets the bytes of an earlier try to fetch the file. */
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

/**
 * Gives back an import whose file found no capacity while it was fetched. Its bytes are deleted, and it is fetched anew
 * once no other import of its workspace holds a file (`claimImport`). So it never fails because others take capacity,
 * and later imports whose files are here go first. `reason` is shown to its owner meanwhile. By the primary keys.
 *
 * @returns false if it would not find capacity by itself either, or if this worker has lost the import.
 */
export async function waitForCapacity(
  database: DatabaseOrTransaction,
  { environmentId, importId }: ImportKey,
  { fencing, bytes, nowMs, unfinishedSizeBytesMax }: Omit<ImportPiece, 'leaseMs' | 'storage'>,
  reason: string,
): Promise<boolean> {
  const { rows } = await sql<{ importId: number }>`
    with waiting as (
      update imports set size_bytes = 0, waits_for_room = true, ${NOT_HELD}, error = ${reason},
             updated_at = ${new Date(nowMs)}
      where environment_id = ${environmentId} and import_id = ${importId} and fencing = ${fencing}::bigint
        and state = 'preprocessing' and size_bytes + ${bytes.length}::int <= ${unfinishedSizeBytesMax}::bigint
      returning environment_id, import_id
    ), emptied as (
      delete from import_chunks c using waiting w
      where c.environment_id = w.environment_id and c.import_id = w.import_id
    )
    select import_id as "importId" from waiting`.execute(database);
  return rows.length > 0;
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
