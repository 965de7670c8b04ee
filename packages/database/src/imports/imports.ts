/**
 * Imports: their state for the API, and the progress of a worker. Requests of users: `import-changes.ts`.
 *
 * ```
 *   preprocessing ─▶ preprocessed ─▶ validating ─▶ validated ─▶ importing ─▶ imported
 *   (file comes)      (file is here)                                │
 *        └──────────────── any of them ─────────────────────────────┴─▶ failed, canceled
 * ```
 * One worker at a time works on an import: it holds a lease, and every statement of its names the number (fencing) that
 * it got with it. If its lease has gone to another, or the import was cancelled, its statements touch no row. By the
 * primary key (environment_id, import_id), unless a statement has another index in its comment.
 */
import type { ImportIdentifier } from '@sluice/domain/imports/import-file';
import { sql } from 'kysely';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { IS_OPEN } from '../delivery/lanes.ts';

export type ImportState =
  | 'preprocessing'
  | 'preprocessed'
  | 'validating'
  | 'validated'
  | 'importing'
  | 'imported'
  | 'failed'
  | 'canceled';

export interface ImportKey {
  readonly environmentId: number;
  readonly importId: number;
}

/** Properties of a file, found at its start (`worker/src/imports/file-form.ts`). */
export interface FileForm {
  /** A name of the WHATWG Encoding Standard. */
  readonly encoding: string;
  /** Between cells. */
  readonly separator: ',' | ';' | '\t' | '|';
  /** `newline`: with or without a carriage return before it. `return`: a carriage return alone. `any`: either of them. */
  readonly rowEnd: 'newline' | 'return' | 'any';
  /** Start of the line of names, in the file's UTF-8. */
  readonly firstByte: number;
  /** Lines in front of it: `sep=;` is one. */
  readonly linesBefore: number;
}

/** int8 columns come as text; these are far below 2^53. */
export interface ImportRow extends ImportKey {
  readonly name: string;
  readonly description: string | null;
  readonly identifier: ImportIdentifier;
  readonly dataToProcess: 'all' | 'only_existing';
  readonly dataFileUrl: string | null;
  readonly state: ImportState;
  readonly error: string | null;
  readonly columns: readonly string[] | null;
  /** Of the file, as its sender or its server declared it. Null: not declared. */
  readonly encoding: string | null;
  /** Null until the file was looked at; also of files whose rows were begun by an older version, which are UTF-8. */
  readonly fileForm: FileForm | null;
  readonly sizeBytes: number;
  readonly nextByte: number;
  readonly rowsRead: number;
  readonly rowsImported: number;
  readonly rowsFailed: number;
  readonly rowsWarned: number;
  readonly fencing: number;
  readonly traceparent: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A row as `pg` gives it. */
export type StoredImport = {
  [Key in keyof ImportRow]: Key extends NumberColumn ? string : ImportRow[Key];
};
type NumberColumn = (typeof NUMBER_COLUMNS)[number];

const NUMBER_COLUMNS = [
  'sizeBytes',
  'nextByte',
  'rowsRead',
  'rowsImported',
  'rowsFailed',
  'rowsWarned',
  'fencing',
] as const;

export const IMPORT_COLUMNS = sql`
  environment_id as "environmentId", import_id as "importId", name, description, identifier,
  data_to_process as "dataToProcess", data_file_url as "dataFileUrl", state, error, columns,
  encoding, file_form as "fileForm", size_bytes as "sizeBytes", next_byte as "nextByte", rows_read as "rowsRead",
  rows_imported as "rowsImported", rows_failed as "rowsFailed", rows_warned as "rowsWarned", fencing,
  traceparent, created_at as "createdAt", updated_at as "updatedAt"`;

/** A workspace that is deleted, or whose account is closed, gets no more events; its imports end by their age. */
export const IS_OF_OPEN_WORKSPACE = sql`exists (
  select from environments join accounts using (account_id)
  where environments.environment_id = imports.environment_id and ${IS_OPEN})`;

/** The condition of `imports_unfinished`. */
export const IS_IMPORT_UNFINISHED = sql`state not in ('imported', 'failed', 'canceled')`;

/** By Postgres' clock: workers that are of two minds about the time must not be about who has the import. */
export const heldFor = (leaseMs: number) => sql`
  held_until = clock_timestamp() + make_interval(secs => ${leaseMs / 1_000}::float8), lease_until = 'infinity'`;

/** Of one without a holder; `lease_until` keeps older workers away (`heldFor`), unless one of them holds it. */
export const NOT_HELD = sql`held_until = null, lease_until = 'infinity'`;

export const IS_LEASE_OVER = sql`(
  (held_until is null or held_until < clock_timestamp())
  and (lease_until is null or lease_until < clock_timestamp() or lease_until = 'infinity'))`;

/** Of the same workspace, and not ended. */
const DO_OTHERS_HOLD_FILES = sql`exists (
  select from imports other
  where other.environment_id = imports.environment_id and other.import_id <> imports.import_id
    and other.size_bytes > 0 and other.${IS_IMPORT_UNFINISHED})`;

function fromStored(row: StoredImport): ImportRow {
  const numbers = Object.fromEntries(NUMBER_COLUMNS.map((name) => [name, Number(row[name])]));
  return { ...row, ...(numbers as Record<NumberColumn, number>) };
}

export const firstImport = (rows: readonly StoredImport[]): ImportRow | undefined =>
  rows[0] && fromStored(rows[0]);

export async function findImport(
  database: DatabaseOrTransaction,
  { environmentId, importId }: ImportKey,
): Promise<ImportRow | undefined> {
  const { rows } = await sql<StoredImport>`
    select ${IMPORT_COLUMNS} from imports
    where environment_id = ${environmentId} and import_id = ${importId}::int`.execute(database);
  return firstImport(rows);
}

/** Newest first; `beforeId` is the last of the page before. By the primary key, backwards. */
export async function listImports(
  database: DatabaseOrTransaction,
  environmentId: number,
  beforeId: number | undefined,
  limit: number,
): Promise<ImportRow[]> {
  const { rows } = await sql<StoredImport>`
    select ${IMPORT_COLUMNS} from imports
    where environment_id = ${environmentId} ${beforeId === undefined ? sql`` : sql`and import_id < ${beforeId}::int`}
    order by import_id desc
    limit ${limit}`.execute(database);
  return rows.map(fromStored);
}

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
