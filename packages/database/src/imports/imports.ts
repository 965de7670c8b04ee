/**
 * Imports, as the API and the worker read them.
 *
 * Requests of users: `import-changes.ts`. Progress of a worker: `import-claims.ts`.
 *
 * ```
 *   preprocessing ─▶ preprocessed ─▶ validating ─▶ validated ─▶ importing ─▶ imported
 *   (file comes)      (file is here)                                │
 *        └──────────────── any of them ─────────────────────────────┴─▶ failed, canceled
 * ```
 * By the primary key (environment_id, import_id), unless a statement has another index in its comment.
 */
import type { ImportIdentifier } from '@sluice/domain/imports/import-file';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
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

export function fromStored(row: StoredImport): ImportRow {
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
