/**
 * The issues log: counted by workspace, day, code, source and field, with the latest message,
 * sample and credential, so that a client that does the same wrong thing a million times has one row a day. A client that
 * does ever new things wrong has a bounded number of rows (`issue-field-bounds.ts`).
 */
import type { IssueRow } from '@sluice/domain/state/loaded-state';
import { sql } from 'kysely';
import { bigintColumn, integerColumn, textColumn, timestampColumn } from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { countIssues } from './counted-issues.ts';
import { withinFieldBounds } from './issue-field-bounds.ts';

/**
 * Adds to the log. In order of the primary key, whose rows are locked until the end of the
 * transaction, so call it late.
 */
export async function recordIssues(
  transaction: DatabaseOrTransaction,
  issues: readonly IssueRow[],
): Promise<void> {
  if (issues.length === 0) return;
  const counted = await withinFieldBounds(transaction, countIssues(issues));
  await sql`
    insert into ingestion_issues as i
      (environment_id, day, code, source, field, count, first_at, last_at, message, sample, credential_id)
    select environment_id, (day at time zone 'UTC')::date, code, source, field, count, first_at, last_at, message, sample, credential_id
    from unnest(
      ${integerColumn(counted, (issue) => issue.environmentId)}::int[],
      ${timestampColumn(counted, (issue) => issue.dayMs)}::timestamptz[],
      ${textColumn(counted, (issue) => issue.code)}::text[],
      ${textColumn(counted, (issue) => issue.source)}::text[],
      ${textColumn(counted, (issue) => issue.field)}::text[],
      ${integerColumn(counted, (issue) => issue.count)}::int[],
      ${timestampColumn(counted, (issue) => issue.firstAtMs)}::timestamptz[],
      ${timestampColumn(counted, (issue) => issue.lastAtMs)}::timestamptz[],
      ${textColumn(counted, (issue) => issue.message)}::text[],
      ${textColumn(counted, (issue) => issue.sample)}::text[],
      ${bigintColumn(counted, (issue) => issue.credentialId)}::bigint[]
    ) as n (environment_id, day, code, source, field, count, first_at, last_at, message, sample, credential_id)
    order by environment_id, day, code collate "C", source collate "C", field collate "C"
    on conflict (environment_id, day, code, source, field) do update
      set count = i.count + excluded.count,
          first_at = least(i.first_at, excluded.first_at),
          last_at = greatest(i.last_at, excluded.last_at),
          message = excluded.message,
          sample = excluded.sample,
          credential_id = coalesce(excluded.credential_id, i.credential_id)`.execute(transaction);
}

/**
 * Forgets days that are over for so long, of all workspaces. Reads the whole table, which has some
 * thousand rows a day and workspace at most: run it every few hours.
 *
 * @returns how many rows went; `limit` means that there may be more.
 */
export async function deleteOldIssues(
  database: DatabaseOrTransaction,
  keptDays: number,
  nowMs: number,
  limit: number,
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from ingestion_issues where (environment_id, day, code, source, field) in (
      select environment_id, day, code, source, field from ingestion_issues
      where day < (${new Date(nowMs)}::timestamptz at time zone 'UTC')::date - ${keptDays}::int
      limit ${limit}
    )`.execute(database);
  return Number(numAffectedRows);
}
