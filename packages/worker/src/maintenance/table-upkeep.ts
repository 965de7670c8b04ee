/**
 * Maintains growing tables by the clock: it makes partitions ahead, and deletes old days of the issues log and old
 * imports.
 */
import type { Database } from '@sluice/database/connection/connection';
import { makeEventPartitions } from '@sluice/database/events/events';
import { deleteOldIssues } from '@sluice/database/events/ingestion-issues';
import { deleteOldImports } from '@sluice/database/imports/import-upkeep';
import { deleteOldMinutes } from '@sluice/database/maintenance/minute-statistics';
import { findDatabaseTime } from '@sluice/database/maintenance/delivery-retention';
import { forgetDeletedIdentifiers } from '@sluice/database/people/deleted-identifiers';
import { dropOldVisitors, makeVisitorPartitions } from '@sluice/database/people/visitors';
import { VISITOR_AGE_MS_MAX } from '@sluice/domain/state/visitor-profile';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';

export interface Retention {
  readonly issuesKeptDays: number;
  readonly importsKeptDays: number;
}

export interface TableUpkeepDeps {
  readonly database: Database;
  readonly retention: Retention;
  readonly now: () => number;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
  /** Aborted by the stop, which ends its other listeners too. */
  readonly stopping: AbortController;
}

/** Events of a month without a partition go to the default one, which never shrinks. */
const PARTITIONS_AHEAD_MONTHS = 3;
const VISITOR_WEEKS_AHEAD = 3;
const FORGETTING_INTERVAL_MS = 3_600_000;
const PARTITIONS_INTERVAL_MS = 6 * 3_600_000;
const ISSUES_A_STEP = 5_000;
const DELETIONS_A_STEP = 5_000;
/** As long as a disk buffer may have to wait for its machine. */
const DELETIONS_KEPT_MS = 30 * 86_400_000;
/** As far back as charts go. */
const MINUTES_KEPT_MS = 30 * 86_400_000;
const MINUTES_A_STEP = 10_000;
/** Each may take 200,000 rows of problems with it. */
const IMPORTS_A_STEP = 10;

/** It stops with `lifecycle`. */
export function startTableUpkeep(deps: TableUpkeepDeps): void {
  const { database, retention, now, logger, lifecycle, stopping } = deps;
  const forgetting = repeat('forget old records', FORGETTING_INTERVAL_MS, logger, () =>
    forgetOldRecords(database, retention, now(), stopping.signal),
  );
  lifecycle.defer('forgetting', () => {
    stopping.abort();
    return forgetting.stop();
  });
  const partitions = repeat('make partitions', PARTITIONS_INTERVAL_MS, logger, () =>
    keepPartitions(database, now()),
  );
  lifecycle.defer('partitions', () => partitions.stop());
}

/** Makes partitions ahead and drops visitors of a month ago. May be run by several workers at once. */
async function keepPartitions(database: Database, nowMs: number): Promise<void> {
  await makeEventPartitions(database, PARTITIONS_AHEAD_MONTHS);
  const databaseTime = await findDatabaseTime(database);
  await makeVisitorPartitions(database, databaseTime, VISITOR_WEEKS_AHEAD);
  // By the earlier of both clocks: a worker whose clock is ahead must not drop rows that are kept for a month.
  const earlier = new Date(Math.min(databaseTime.getTime(), nowMs));
  await dropOldVisitors(database, earlier, VISITOR_AGE_MS_MAX);
}

/** A few thousand rows a statement, so that each holds its locks briefly. May be run by several workers at once. */
export async function forgetOldRecords(
  database: Database,
  { issuesKeptDays, importsKeptDays }: Retention,
  nowMs: number,
  stopping: AbortSignal,
): Promise<void> {
  const steps = [
    [ISSUES_A_STEP, () => deleteOldIssues(database, issuesKeptDays, nowMs, ISSUES_A_STEP)],
    [
      DELETIONS_A_STEP,
      () =>
        forgetDeletedIdentifiers(database, new Date(nowMs - DELETIONS_KEPT_MS), DELETIONS_A_STEP),
    ],
    [
      MINUTES_A_STEP,
      () => deleteOldMinutes(database, new Date(nowMs - MINUTES_KEPT_MS), MINUTES_A_STEP),
    ],
    [IMPORTS_A_STEP, () => deleteOldImports(database, importsKeptDays, nowMs, IMPORTS_A_STEP)],
  ] as const;
  for (const [limit, step] of steps) {
    while (!stopping.aborted && (await step()) === limit);
  }
}
