/**
 * The lease of an import, and its progress.
 *
 * One worker at a time holds an import. Each of its statements names the number (fencing) that it got with the lease. If
 * the lease has gone to another worker, or the import was cancelled, its statements touch no row. By the primary key
 * (environment_id, import_id), unless a statement has another index in its comment. Beside `imports.ts`.
 */
import { sql } from 'kysely';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import {
  fromStored,
  heldFor,
  IS_IMPORT_UNFINISHED,
  IS_LEASE_OVER,
  IS_OF_OPEN_WORKSPACE,
  type FileForm,
  type ImportKey,
  type ImportRow,
  type ImportState,
  type StoredImport,
} from './imports.ts';

/** Of the same workspace, and not ended. */
const DO_OTHERS_HOLD_FILES = sql`exists (
  select from imports other
  where other.environment_id = imports.environment_id and other.import_id <> imports.import_id
    and other.size_bytes > 0 and other.${IS_IMPORT_UNFINISHED})`;

/** An import that a worker holds from now on. */
export interface ClaimedImport extends ImportRow {
  /** Of its workspace. Read by the claim itself: a second statement that failed would leave the import without a worker. */
  readonly accountId: number;
}

/** The import that a worker wants next. */
export interface WantedImport {
  /**
   * Workspaces whose imports the worker took before, the latest last: imports of all others come first. Without it, the
   * many imports of a few workspaces would go before the first of a new one.
   */
  readonly servedEnvironmentIds?: readonly number[];
  /** Of an account that is not one of these. */
  readonly withoutAccountIds?: readonly number[];
  /** Only one whose file is here, or only one whose file is to be fetched from its URL. Absent: any. */
  readonly file?: 'here' | 'remote';
}

/**
 * Takes the lease of the next import that has work for a worker and no holder: the oldest of the workspace that had its
 * turn longest ago. Imports whose file is being sent to us have no such work: the API works on them. One at a time for
 * each workspace, so that many files of one do not take the turns of the others: a fetch may take hours, and a worker
 * has few turns. So claims are made one at a time. Fetches have turns of their own, so a fetch keeps no file that is here
 * waiting; and a file is fetched once all earlier ones of its workspace are imported. An import that waits, for capacity or with a lease without a holder
 * (`ImportStep.isWaiting`), lets imports pass whose files take capacity. By `imports_unfinished`.
 */
export async function claimImport(
  database: Database,
  leaseMs: number,
  wanted: WantedImport = {},
): Promise<ClaimedImport | undefined> {
  return database.transaction().execute(async (transaction) => {
    // A statement of its own: the next one must see the claims that were made meanwhile.
    await sql`select pg_advisory_xact_lock(hashtext('claim import'))`.execute(transaction);
    return claimNext(transaction, leaseMs, wanted);
  });
}

async function claimNext(
  transaction: Transaction,
  leaseMs: number,
  { servedEnvironmentIds = [], withoutAccountIds = [], file }: WantedImport,
): Promise<ClaimedImport | undefined> {
  const { rows } = await sql<StoredImport & { accountId: string }>`
    with waiting as (
      select environment_id, import_id,
             (select account_id from environments where environments.environment_id = imports.environment_id) as account_id
      from imports
      where ${IS_IMPORT_UNFINISHED} and ${IS_LEASE_OVER}
        and ((state <> 'preprocessing' and ${file !== 'remote'}::boolean)
          or (state = 'preprocessing' and data_file_url is not null and ${file !== 'here'}::boolean))
        and ${IS_OF_OPEN_WORKSPACE}
        and not exists (
          select from environments
          where environments.environment_id = imports.environment_id
            and account_id = any(${withoutAccountIds}::bigint[]))
        and not exists (
          select from imports held
          where held.environment_id = imports.environment_id and held.${IS_IMPORT_UNFINISHED}
            and (held.held_until >= clock_timestamp()
              or (held.lease_until >= clock_timestamp() and held.lease_until <> 'infinity'))
            and not held.waits_for_room
            and not (held.state = 'preprocessing' and ${file === 'here'}::boolean))
        and not (${file === 'remote'}::boolean and exists (
          select from imports begun
          where begun.environment_id = imports.environment_id and begun.${IS_IMPORT_UNFINISHED}
            and begun.state <> 'preprocessing' and begun.import_id < imports.import_id))
        and (not waits_for_room or not ${DO_OTHERS_HOLD_FILES})
      order by coalesce(array_position(${servedEnvironmentIds}::int[], environment_id), 0),
               created_at, environment_id, import_id
      limit 1
      for update skip locked
    )
    update imports i set fencing = i.fencing + 1, waits_for_room = false, ${heldFor(leaseMs)}
    from waiting w where i.environment_id = w.environment_id and i.import_id = w.import_id
    returning ${COLUMNS_OF_I}, w.account_id as "accountId"`.execute(transaction);
  const [row] = rows;
  return row && { ...fromStored(row), accountId: Number(row.accountId) };
}

const COLUMNS_OF_I = sql`
  i.environment_id as "environmentId", i.import_id as "importId", i.name, i.description, i.identifier,
  i.data_to_process as "dataToProcess", i.data_file_url as "dataFileUrl", i.state, i.error, i.columns, i.encoding, i.file_form as "fileForm",
  i.size_bytes as "sizeBytes", i.next_byte as "nextByte", i.rows_read as "rowsRead",
  i.rows_imported as "rowsImported", i.rows_failed as "rowsFailed", i.rows_warned as "rowsWarned", i.fencing,
  i.traceparent, i.created_at as "createdAt", i.updated_at as "updatedAt"`;

/** A worker's report about an import that it holds. */
export interface ImportStep {
  readonly state: ImportState;
  readonly error?: string;
  readonly columns?: readonly string[];
  readonly fileForm?: FileForm;
  /** As the server of a fetched file declared it. */
  readonly encoding?: string;
  /** Of the batch that is written in this transaction. */
  readonly batch?: {
    readonly nextByte: number;
    readonly rowsRead: number;
    readonly rowsImported: number;
    readonly rowsFailed: number;
    readonly rowsWarned: number;
  };
  /** 0: the lease is given back. */
  readonly leaseMs: number;
  /** It has no worker until the lease ends, so it keeps no other of its workspace from being claimed. */
  readonly isWaiting?: true;
  readonly nowMs: number;
}

/**
 * Keeps an import for this transaction, however long that takes: it cannot be claimed meanwhile, though its lease ends.
 * False if it is lost, or has ended. By the primary key.
 */
export async function lockImport(
  transaction: DatabaseOrTransaction,
  { environmentId, importId, fencing }: Pick<ImportRow, keyof ImportKey | 'fencing'>,
): Promise<boolean> {
  const { rows } = await sql`
    select from imports
    where environment_id = ${environmentId} and import_id = ${importId} and fencing = ${fencing}::bigint
      and ${IS_IMPORT_UNFINISHED}
    for no key update`.execute(transaction);
  return rows.length > 0;
}

/**
 * Writes progress and keeps the lease; false if it is lost, or the import or its workspace has ended meanwhile. A
 * final state deletes the bytes.
 */
export async function advanceImport(
  transaction: DatabaseOrTransaction,
  { environmentId, importId, fencing }: Pick<ImportRow, keyof ImportKey | 'fencing'>,
  step: ImportStep,
): Promise<boolean> {
  const { batch, columns, encoding, fileForm, nowMs } = step;
  const { numAffectedRows = 0n } = await sql`
    update imports set
      state = ${step.state},
      error = ${step.error ?? null},
      ${columns === undefined ? sql`` : sql`columns = ${JSON.stringify(columns)}::jsonb,`}
      ${fileForm === undefined ? sql`` : sql`file_form = ${JSON.stringify(fileForm)}::jsonb,`}
      ${encoding === undefined ? sql`` : sql`encoding = ${encoding},`}
      ${
        batch === undefined
          ? sql``
          : sql`
      next_byte = ${batch.nextByte}::bigint,
      rows_read = rows_read + ${batch.rowsRead}::int,
      rows_imported = rows_imported + ${batch.rowsImported}::int,
      rows_failed = rows_failed + ${batch.rowsFailed}::int,
      rows_warned = rows_warned + ${batch.rowsWarned}::int,`
      }
      ${step.isWaiting ? sql`waits_for_room = true,` : sql``}
      ${heldFor(step.leaseMs)},
      updated_at = ${new Date(nowMs)}
    where environment_id = ${environmentId} and import_id = ${importId} and fencing = ${fencing}::bigint
      and ${IS_IMPORT_UNFINISHED} and ${IS_OF_OPEN_WORKSPACE}`.execute(transaction);
  if (numAffectedRows === 0n) return false;
  if (step.state === 'imported' || step.state === 'failed') {
    await sql`delete from import_chunks where environment_id = ${environmentId} and import_id = ${importId}`.execute(
      transaction,
    );
  }
  return true;
}
