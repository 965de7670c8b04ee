/**
 * The issues log: counted by workspace, day, code, source and field, with the latest message,
 * sample and credential, so that a client that does the same wrong thing a million times has one row a day.
 */
import type { IssueRow } from '@sluice/domain/state/loaded-state';
import { toStorableText } from '@sluice/domain/values/storable-text';
import { sql } from 'kysely';
import { bigintColumn, integerColumn, textColumn, timestampColumn } from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

const FIELD_LENGTH_MAX = 200;
const SAMPLE_LENGTH_MAX = 200;
const MESSAGE_LENGTH_MAX = 1_000;
const DAY_MS = 24 * 60 * 60 * 1000;

interface CountedIssue {
  readonly environmentId: number;
  readonly dayMs: number;
  readonly code: string;
  readonly source: string;
  readonly field: string;
  count: number;
  firstAtMs: number;
  lastAtMs: number;
  message: string;
  sample: string | null;
  credentialId: number | null;
}

/**
 * Adds to the log. In order of the primary key, whose rows are locked until the end of the
 * transaction, so call it late.
 */
export async function recordIssues(
  transaction: DatabaseOrTransaction,
  issues: readonly IssueRow[],
): Promise<void> {
  if (issues.length === 0) return;
  const counted = countIssues(issues);
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
 * Forgets days that are over for so long, of all workspaces. Reads the whole table, which has a few
 * hundred rows a day and workspace: run it every few hours.
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

/** One row for each key: an upsert may not meet the same key twice. */
function countIssues(issues: readonly IssueRow[]): CountedIssue[] {
  const counted = new Map<string, CountedIssue>();
  for (const { environmentId, source, issue, count, atMs } of issues) {
    const dayMs = Math.floor(atMs / DAY_MS) * DAY_MS;
    const field = fieldOf(issue.field);
    const message = storable(issue.message, MESSAGE_LENGTH_MAX);
    const sample = issue.sample === undefined ? null : storable(issue.sample, SAMPLE_LENGTH_MAX);
    const key = JSON.stringify([environmentId, dayMs, issue.code, source, field]);
    const known = counted.get(key);
    if (known) {
      known.count += count;
      known.firstAtMs = Math.min(known.firstAtMs, atMs);
      known.lastAtMs = Math.max(known.lastAtMs, atMs);
      known.message = message;
      known.sample = sample;
      known.credentialId = issue.credentialId ?? known.credentialId;
    } else {
      const { code } = issue;
      counted.set(key, {
        environmentId,
        dayMs,
        code,
        source,
        field,
        count,
        firstAtMs: atMs,
        lastAtMs: atMs,
        message,
        sample,
        credentialId: issue.credentialId ?? null,
      });
    }
  }
  return [...counted.values()];
}

/** Positions in lists are one field: `batch.17.event` counts as `batch.*.event`. */
function fieldOf(field: string | null): string {
  return storable(field ?? '', FIELD_LENGTH_MAX).replaceAll(/(?<=^|\.)\d+(?=\.|$)/g, '*');
}

function storable(text: string, lengthMax: number): string {
  return toStorableText(text.slice(0, lengthMax));
}
