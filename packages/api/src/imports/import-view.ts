/** Imports as their owners see them: the progress, and the rows that something was wrong with. */
import type { Database } from '@sluice/database/connection/connection';
import {
  listImportProblems,
  type ImportProblem,
  type ProblemSeverity,
} from '@sluice/database/imports/import-problems';
import type { ImportRow } from '@sluice/database/imports/imports';
import { spreadsheetRow } from '@sluice/domain/imports/import-file';
import { csvLine } from '@sluice/domain/value-rules/csv-line';
import { z } from 'zod';

const PROBLEMS_A_READ = 1_000;

export const importView = z
  .object({
    id: z.int(),
    name: z.string(),
    description: z.string().nullable(),
    type: z.literal('event'),
    identifier: z.enum(['id', 'email']),
    object_type_id: z.null().meta({ description: 'Of other kinds of imports.' }),
    data_to_process: z.enum(['all', 'only_existing']),
    encoding: z.string().nullable().meta({
      description:
        'The encoding found in the file, or until then the declared one; null if neither is known.',
    }),
    state: z.enum([
      'preprocessing',
      'preprocessed',
      'validating',
      'validated',
      'importing',
      'imported',
      'failed',
      'canceled',
    ]),
    percent: z.int().meta({ description: 'Of the bytes of the file.' }),
    rows_to_import: z.int().nullable().meta({ description: 'Known once every row was read.' }),
    rows_read: z.int(),
    rows_imported: z.int(),
    rows_failed: z.int(),
    rows_with_warnings: z.int(),
    error: z.string().nullable().meta({
      description:
        'The reason of the failure; while it is `preprocessing`, the reason of the wait.',
    }),
    errors_url: z.string().meta({ description: 'Rows that were not imported, as CSV.' }),
    warnings_url: z.string().meta({ description: 'Rows that were imported with a difference.' }),
    created_at: z.int(),
    updated_at: z.int(),
  })
  .meta({ id: 'Import', description: 'A file of events and how far it is.' });

/** The body of an answer about one. */
export const oneImport = z.object({ import: importView });

/** The wire body. */
export function toWire(row: ImportRow): z.infer<typeof importView> {
  const hasEnded = row.state === 'imported';
  return {
    id: row.importId,
    name: row.name,
    description: row.description,
    type: 'event',
    identifier: row.identifier,
    object_type_id: null,
    data_to_process: row.dataToProcess,
    encoding: row.fileForm?.encoding ?? row.encoding,
    state: row.state,
    percent: hasEnded ? 100 : percentOf(row),
    rows_to_import: hasEnded ? row.rowsRead : null,
    rows_read: row.rowsRead,
    rows_imported: row.rowsImported,
    rows_failed: row.rowsFailed,
    rows_with_warnings: row.rowsWarned,
    error: row.error,
    errors_url: `/v1/imports/${row.importId}/errors`,
    warnings_url: `/v1/imports/${row.importId}/warnings`,
    created_at: Math.floor(row.createdAt.getTime() / 1000),
    updated_at: Math.floor(row.updatedAt.getTime() / 1000),
  };
}

const percentOf = ({ nextByte, sizeBytes }: ImportRow): number =>
  // Bytes that are read are of UTF-8, of which there may be more than in the file.
  sizeBytes === 0 ? 0 : Math.min(99, Math.floor((100 * nextByte) / sizeBytes));

/** The problems of one severity as CSV, as they are read. */
export async function* problemsAsCsv(
  database: Database,
  row: ImportRow,
  severity: ProblemSeverity,
): AsyncGenerator<string, void, undefined> {
  yield csvLine(['row_number', 'severity', 'column', 'code', 'message', ...(row.columns ?? [])]);
  for (let after = { rowNumber: 0, position: 0 }; ;) {
    const problems = await listImportProblems(database, row, severity, after, PROBLEMS_A_READ);
    if (problems.length > 0)
      yield problems.map((problem) => toCsv(problem, row.fileForm?.linesBefore)).join('');
    const last = problems.at(-1);
    if (last === undefined || problems.length < PROBLEMS_A_READ) return;
    after = last;
  }
}

const toCsv = (
  { rowNumber, severity, column, code, message, record }: ImportProblem,
  linesBefore: number | undefined,
): string => {
  const row = String(spreadsheetRow(rowNumber, linesBefore));
  return csvLine([row, severity, column, code, message, ...record]);
};
