/** Errors of import rows, for the owner's two files. */
import { PROBLEM_ROW_SIZE_BYTES, type ProblemsSize } from '@sluice/domain/imports/problem-limits';
import { sql } from 'kysely';
import { integerColumn, jsonColumn, textColumn, bigintColumn } from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import type { ImportKey } from './imports.ts';

/** `error`: the row was not imported. */
export type ProblemSeverity = 'error' | 'warning';

export interface ImportProblem {
  readonly severity: ProblemSeverity;
  readonly rowNumber: number;
  /** It distinguishes several problems of one row. */
  readonly position: number;
  /** '' if the problem is not about one column. */
  readonly column: string;
  readonly code: string;
  readonly message: string;
  /** The row as it came. */
  readonly record: readonly string[];
}

/** A row is written once: the batch that brings it is committed once. */
export async function insertImportProblems(
  transaction: DatabaseOrTransaction,
  { environmentId, importId }: ImportKey,
  problems: readonly ImportProblem[],
): Promise<void> {
  if (problems.length === 0) return;
  await sql`
    insert into import_problems
      (environment_id, import_id, severity, row_number, position, column_name, code, message, record)
    select ${environmentId}::int, ${importId}::int, * from unnest(
      ${textColumn(problems, (problem) => problem.severity)}::text[],
      ${bigintColumn(problems, (problem) => problem.rowNumber)}::bigint[],
      ${integerColumn(problems, (problem) => problem.position)}::int[],
      ${textColumn(problems, (problem) => problem.column)}::text[],
      ${textColumn(problems, (problem) => problem.code)}::text[],
      ${textColumn(problems, (problem) => problem.message)}::text[],
      ${jsonColumn(problems, (problem) => problem.record)}::jsonb[]
    )`.execute(transaction);
}

/**
 * Bytes of the kept problems of a workspace, as Postgres stores the rows of files: large ones are compressed. By the
 * primary key.
 */
export async function sumImportProblems(
  database: DatabaseOrTransaction,
  { environmentId, importId }: ImportKey,
): Promise<ProblemsSize> {
  const { rows } = await sql<{ own: string; others: string }>`
    select coalesce(sum(size_bytes) filter (where import_id = ${importId}::int), 0) as own,
           coalesce(sum(size_bytes) filter (where import_id <> ${importId}::int), 0) as others
      from (
        select import_id, ${PROBLEM_ROW_SIZE_BYTES}::int + octet_length(column_name) + octet_length(message)
               + pg_column_size(record) as size_bytes
          from import_problems where environment_id = ${environmentId}
      ) as problems`.execute(database);
  const [sizes = { own: '0', others: '0' }] = rows;
  return { own: Number(sizes.own), others: Number(sizes.others) };
}

/** In order of rows, after one; by the primary key. */
export async function listImportProblems(
  database: DatabaseOrTransaction,
  { environmentId, importId }: ImportKey,
  severity: ProblemSeverity,
  after: Pick<ImportProblem, 'rowNumber' | 'position'>,
  limit: number,
): Promise<ImportProblem[]> {
  const { rows } = await sql<Omit<ImportProblem, 'rowNumber'> & { rowNumber: string }>`
    select severity, row_number as "rowNumber", position, column_name as "column", code, message, record
    from import_problems
    where environment_id = ${environmentId} and import_id = ${importId} and severity = ${severity}
      and (row_number, position) > (${after.rowNumber}::bigint, ${after.position}::int)
    order by row_number, position
    limit ${limit}`.execute(database);
  return rows.map((row) => ({ ...row, rowNumber: Number(row.rowNumber) }));
}
