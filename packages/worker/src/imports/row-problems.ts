/** Chooses the kept problems of a batch of rows. Used by `import-rows.ts`. */
import type { ImportProblem } from '@sluice/database/imports/import-problems';
import { PROBLEM_ROWS_MAX, PROBLEM_ROW_SIZE_BYTES } from '@sluice/domain/imports/problem-limits';
import { isError } from '@sluice/domain/operations/issue';
import type { PublishedRow } from './publish-rows.ts';

export interface JudgedRow extends PublishedRow {
  readonly cells: readonly string[];
}

/** Space that an import has left for problems. */
interface ProblemsLeft {
  /** Rows that failed, and rows with a warning, before this batch. */
  readonly rowsFailed: number;
  readonly rowsWarned: number;
  readonly sizeBytes: number;
}

interface KeptProblems {
  readonly problems: readonly ImportProblem[];
  readonly sizeBytes: number;
}

/** A problem that does not fit is left out. A smaller one after it may fit. */
export function keepProblems(rows: readonly JudgedRow[], left: ProblemsLeft): KeptProblems {
  let errorCapacity = PROBLEM_ROWS_MAX - left.rowsFailed;
  let warningCapacity = PROBLEM_ROWS_MAX - left.rowsWarned;
  const problems: ImportProblem[] = [];
  let sizeBytes = 0;
  for (const { rowNumber, cells, event, issues } of rows) {
    if (issues.length === 0) continue;
    const hasCapacity = event === undefined ? errorCapacity-- > 0 : warningCapacity-- > 0;
    if (!hasCapacity || sizeBytes >= left.sizeBytes) continue;
    const record = cells.map(storable);
    const recordSizeBytes = PROBLEM_ROW_SIZE_BYTES + Buffer.byteLength(JSON.stringify(record));
    for (const [position, issue] of issues.entries()) {
      const { code, message } = issue;
      const column = issue.field ?? '';
      const ownSizeBytes = recordSizeBytes + Buffer.byteLength(column) + Buffer.byteLength(message);
      if (sizeBytes + ownSizeBytes > left.sizeBytes) continue;
      sizeBytes += ownSizeBytes;
      const severity = isError(issue) ? 'error' : 'warning';
      problems.push({ severity, rowNumber, position, column, code, message, record });
    }
  }
  return { problems, sizeBytes };
}

/** A cell with the characters that Postgres can hold. */
const storable = (cell: string): string => cell.replaceAll('\0', '\uFFFD').toWellFormed();
