/**
 * Forgets what nobody looks back at: old days of the issues log, old imports. A few thousand rows a
 * statement, so that none holds locks for long.
 */
import type { Database } from '@sluice/database/connection/connection';
import { deleteOldImports } from '@sluice/database/imports/imports';
import { deleteOldIssues } from '@sluice/database/events/ingestion-issues';

export interface Retention {
  readonly issuesKeptDays: number;
  readonly importsKeptDays: number;
}

const ISSUES_A_STEP = 5_000;
/** Each may take 200,000 rows of problems with it. */
const IMPORTS_A_STEP = 10;

/** May be run by several workers at once. */
export async function forgetOldRecords(
  database: Database,
  { issuesKeptDays, importsKeptDays }: Retention,
  nowMs: number,
  stopping: AbortSignal,
): Promise<void> {
  const steps = [
    [ISSUES_A_STEP, () => deleteOldIssues(database, issuesKeptDays, nowMs, ISSUES_A_STEP)],
    [IMPORTS_A_STEP, () => deleteOldImports(database, importsKeptDays, nowMs, IMPORTS_A_STEP)],
  ] as const;
  for (const [limit, step] of steps) {
    while (!stopping.aborted && (await step()) === limit);
  }
}
