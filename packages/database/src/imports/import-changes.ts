/**
 * Changes of an import by its owner or the API.
 *
 * It is made, its file is complete, it is cancelled, or it is given up because its file did not come whole or had come
 * before. Making, ending or deleting one leaves an entry in the audit log, in the same transaction. A worker's progress
 * stands in the row (`imports.ts`). By the primary key (environment_id, import_id).
 */
import type { ImportIdentifier } from '@sluice/domain/imports/import-file';
import type { AuditState } from '@sluice/domain/accounts/audit-registry';
import { UNFINISHED_IMPORT_COUNT_MAX } from '@sluice/domain/imports/import-limits';
import { sql } from 'kysely';
import type { ChangeOrigin } from '../changes/record-change.ts';
import type { Database, Transaction } from '../connection/connection.ts';
import { lockEnvironment } from '../accounts/environments.ts';
import {
  firstImport,
  IMPORT_COLUMNS,
  IS_IMPORT_UNFINISHED,
  NOT_HELD,
  type ImportKey,
  type ImportRow,
  type StoredImport,
} from './imports.ts';
import { type HeldCall, transactOnce } from '../changes/transact-once.ts';
import { recordWorkspaceChange } from '../accounts/workspace-audit.ts';

export interface NewImport {
  readonly environmentId: number;
  readonly name: string;
  readonly description: string | null;
  readonly identifier: ImportIdentifier;
  readonly dataToProcess: 'all' | 'only_existing';
  /** Of the file, as its sender declares it. Absent: not declared. */
  readonly encoding?: string | null;
  /** Null: the file is about to be sent. */
  readonly dataFileUrl: string | null;
  /** Position of the call in a trace. Absent: it is not traced. */
  readonly traceparent?: string | null;
  readonly nowMs: number;
}

/** Made, and waiting for its file or for a worker. `too_many`: the workspace has as many unfinished ones as it may. */
export async function insertImport(
  database: Database,
  made: NewImport,
  origin: ChangeOrigin,
): Promise<ImportRow | 'too_many'> {
  const isMade = (outcome: ImportRow | 'too_many'): boolean => outcome !== 'too_many';
  return transactOnce(database, origin.call, isMade, async (transaction) => {
    await lockEnvironment(transaction, made.environmentId);
    if ((await countUnfinished(transaction, made.environmentId)) >= UNFINISHED_IMPORT_COUNT_MAX)
      return 'too_many';
    const now = new Date(made.nowMs);
    const { rows } = await sql<StoredImport>`
      insert into imports (environment_id, name, description, identifier, data_to_process, encoding, data_file_url, state, traceparent, created_at, updated_at, lease_until)
      values (${made.environmentId}, ${made.name}, ${made.description}, ${made.identifier}, ${made.dataToProcess},
              ${made.encoding ?? null}, ${made.dataFileUrl}, 'preprocessing', ${made.traceparent ?? null}, ${now}, ${now}, 'infinity')
      returning ${IMPORT_COLUMNS}`.execute(transaction);
    const row = firstImport(rows) as ImportRow;
    await record(transaction, row, origin, null, auditState(row), made.nowMs);
    return row;
  });
}

/** By `imports_unfinished`. */
async function countUnfinished(transaction: Transaction, environmentId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from imports
     where environment_id = ${environmentId} and ${IS_IMPORT_UNFINISHED}`.execute(transaction);
  return rows[0]?.count ?? 0;
}

/**
 * The whole file was sent. If the same call has finished an import before, that one is returned, and the caller must
 * delete this one.
 *
 * @returns undefined if the import is gone or cancelled.
 */
export async function finishUpload(
  database: Database,
  { environmentId, importId }: ImportKey,
  call: HeldCall | undefined,
  nowMs: number,
): Promise<ImportRow | undefined> {
  const isFinished = (outcome: ImportRow | undefined): boolean => outcome !== undefined;
  return transactOnce(database, call, isFinished, async (transaction) => {
    const { rows } = await sql<StoredImport>`
      update imports set state = 'preprocessed', ${NOT_HELD}, updated_at = ${new Date(nowMs)}
      where environment_id = ${environmentId} and import_id = ${importId} and state = 'preprocessing'
      returning ${IMPORT_COLUMNS}`.execute(transaction);
    return firstImport(rows);
  });
}

/** Deletes an import whose file did not come whole, or had come before: only the audit log has mentioned it. */
export async function deleteImport(
  database: Database,
  { environmentId, importId }: ImportKey,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    const { rows } = await sql<StoredImport>`
      delete from imports where environment_id = ${environmentId} and import_id = ${importId}
      returning ${IMPORT_COLUMNS}`.execute(transaction);
    const row = firstImport(rows);
    if (row) await record(transaction, row, origin, auditState(row), null, nowMs);
  });
}

/** Ends an unfinished import; imported events stay. Undefined if it has ended, or does not exist. */
export async function cancelImport(
  database: Database,
  { environmentId, importId }: ImportKey,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<ImportRow | undefined> {
  const isCanceled = (outcome: ImportRow | undefined): boolean => outcome !== undefined;
  return transactOnce(database, origin.call, isCanceled, async (transaction) => {
    const { rows } = await sql<StoredImport>`
      update imports set state = 'canceled', error = null, updated_at = ${new Date(nowMs)}
      where environment_id = ${environmentId} and import_id = ${importId}::int and ${IS_IMPORT_UNFINISHED}
      returning ${IMPORT_COLUMNS}`.execute(transaction);
    const row = firstImport(rows);
    // A statement of its own: it must see the piece that came while the row was waited for.
    if (row)
      await sql`
        delete from import_chunks
         where environment_id = ${environmentId} and import_id = ${importId}`.execute(transaction);
    if (row) await record(transaction, row, origin, {}, { cancelled: true }, nowMs);
    return row;
  });
}

const auditState = (row: ImportRow): AuditState<'import'> => ({
  name: row.name,
  description: row.description,
  identifier: row.identifier,
  data_to_process: row.dataToProcess,
  data_file_url: row.dataFileUrl,
});

async function record(
  transaction: Transaction,
  { environmentId, importId, name }: ImportRow,
  origin: ChangeOrigin,
  before: AuditState<'import'> | null,
  after: AuditState<'import'> | null,
  nowMs: number,
): Promise<void> {
  const object = { objectType: 'import', objectId: importId, objectName: name } as const;
  const change = { ...object, before, after };
  await recordWorkspaceChange(transaction, environmentId, origin, change, nowMs);
}
