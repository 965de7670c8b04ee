/**
 * Bounds the rows that a day's issues log has of a workspace. The rule is `domain/src/operations/issue.ts`.
 *
 * Issues with fields that the log has already cost one statement. New fields cost a second one, which counts the rows of the day:
 * some thousands at most. Batches without issues send neither. Two transactions at the same time may both take the last fields of
 * a bound.
 *
 * Before: `ingestion-issues.ts`.
 */
import { listOfField, mayNameField } from '@sluice/domain/operations/issue';
import { sql } from 'kysely';
import { integerColumn, textColumn, timestampColumn } from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { inTenantParts } from '../connection/tenant-statements.ts';
import { addIssue, type CountedIssue } from './counted-issues.ts';

/** @returns the issues, each with a field that the log may have. */
export async function withinFieldBounds(
  transaction: DatabaseOrTransaction,
  counted: readonly CountedIssue[],
): Promise<CountedIssue[]> {
  const unknown = await findUnknown(transaction, counted);
  if (unknown.size === 0) return [...counted];
  const fields = await countFields(transaction, [...unknown]);
  const bounded = new Map<string, CountedIssue>();
  for (const issue of counted) {
    if (!unknown.has(issue) || fields.take(issue)) addIssue(bounded, issue);
    else addIssue(bounded, { ...issue, field: listOfField(issue.field) });
  }
  return [...bounded.values()];
}

/** Issues whose fields the log does not have yet. By the primary key (environment_id, day, code, source, field). */
async function findUnknown(
  transaction: DatabaseOrTransaction,
  counted: readonly CountedIssue[],
): Promise<Set<CountedIssue>> {
  const named = counted.filter(({ field }) => field !== '' && field !== listOfField(field));
  if (named.length === 0) return new Set();
  const known = await inTenantParts(transaction, [named], async (part) => {
    const own = part.only(named);
    const { rows } = await sql<{ position: number }>`
      select n.position::int
      from unnest(
        ${integerColumn(own, (issue) => issue.environmentId)}::int[],
        ${timestampColumn(own, (issue) => issue.dayMs)}::timestamptz[],
        ${textColumn(own, (issue) => issue.code)}::text[],
        ${textColumn(own, (issue) => issue.source)}::text[],
        ${textColumn(own, (issue) => issue.field)}::text[]
      ) with ordinality as n (environment_id, day, code, source, field, position)
      join ingestion_issues i on i.environment_id = n.environment_id and i.day = (n.day at time zone 'UTC')::date
        and i.code = n.code collate "C" and i.source = n.source collate "C"
        and i.field = n.field collate "C"
      where ${part.isOf('i')}`.execute(transaction);
    return rows.map(({ position }) => own[position - 1]);
  });
  const knownIssues = new Set(known);
  return new Set(named.filter((issue) => !knownIssues.has(issue)));
}

/** The rows with fields of the workspaces and days of the issues. By the primary key, as far as the day. */
async function countFields(
  transaction: DatabaseOrTransaction,
  issues: readonly CountedIssue[],
): Promise<FieldCounts> {
  const days = [...new Set(issues.map(({ dayMs }) => new Date(dayMs).toISOString().slice(0, 10)))];
  const rows = await inTenantParts(transaction, [issues], async (part) => {
    const environmentIds = [
      ...new Set(part.only(issues).map(({ environmentId }) => environmentId)),
    ];
    const found = await sql<{
      environmentId: number;
      day: string;
      code: string;
      source: string;
      count: number;
    }>`
      select i.environment_id as "environmentId", to_char(i.day, 'YYYY-MM-DD') as day, i.code, i.source, count(*)::int as count
      from ingestion_issues i
      where i.environment_id = any(${environmentIds}::int[]) and i.day = any(${days}::date[]) and i.field <> ''
        and ${part.isOf('i')}
      group by i.environment_id, i.day, i.code, i.source`.execute(transaction);
    return found.rows;
  });
  const counts = new FieldCounts();
  for (const { environmentId, day, code, source, count } of rows)
    counts.add({ environmentId, dayMs: Date.parse(day), code, source }, count);
  return counts;
}

type KindOfIssue = Pick<CountedIssue, 'environmentId' | 'dayMs' | 'code' | 'source'>;

class FieldCounts {
  readonly #counts = new Map<string, number>();

  add({ environmentId, dayMs, code, source }: KindOfIssue, count: number): void {
    for (const key of [`${environmentId} ${dayMs}`, `${environmentId} ${dayMs} ${code} ${source}`])
      this.#counts.set(key, (this.#counts.get(key) ?? 0) + count);
  }

  /** True if the issue's field may be named; it is counted. */
  take(issue: KindOfIssue): boolean {
    const { environmentId, dayMs, code, source } = issue;
    const day = `${environmentId} ${dayMs}`;
    const ofKind = this.#counts.get(`${day} ${code} ${source}`) ?? 0;
    const isNamed = mayNameField({ ofKind, ofWorkspace: this.#counts.get(day) ?? 0 });
    if (isNamed) this.add(issue, 1);
    return isNamed;
  }
}
