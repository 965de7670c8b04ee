/** The issues log as the API shows it: one row a day, code, source and field, newest day first. */
import type { IssueCode } from '@sluice/domain/operations/issue';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** The last row of a page. */
export interface IssuePosition {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  readonly code: string;
  readonly source: string;
  readonly field: string;
}

export interface IngestionIssueRow extends IssuePosition {
  readonly code: IssueCode;
  /** int8, in decimal digits. */
  readonly count: string;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** Of the latest, like the sample. */
  readonly message: string;
  readonly sample: string | null;
  /** int8, in decimal digits. Null: not known. */
  readonly credentialId: string | null;
}

export interface IngestionIssuePage {
  readonly environmentId: number;
  readonly code: string | undefined;
  readonly source: string | undefined;
  readonly field: string | undefined;
  /** Only these. */
  readonly codes?: readonly string[] | undefined;
  /** Only issues that happened again at or after it. */
  readonly sinceMs: number | undefined;
  /** Only issues that had happened before it. */
  readonly untilMs?: number | undefined;
  readonly after: IssuePosition | undefined;
  readonly limit: number;
}

/**
 * By the primary key (environment_id, day, code, source, field), read backwards. The filters apply to the rows that
 * were read. A workspace has at most a few hundred rows a day.
 */
export async function listIngestionIssues(
  database: DatabaseOrTransaction,
  page: IngestionIssuePage,
): Promise<IngestionIssueRow[]> {
  const { environmentId, code, codes, source, field, sinceMs, untilMs, after, limit } = page;
  const until = untilMs === undefined ? undefined : new Date(untilMs);
  const since = sinceMs === undefined ? undefined : new Date(sinceMs);
  const { rows } = await sql<IngestionIssueRow>`
    select to_char(day, 'YYYY-MM-DD') as day, code, source, field, count,
           first_at as "firstAt", last_at as "lastAt", message, sample, credential_id as "credentialId"
    from ingestion_issues i
    where environment_id = ${environmentId}
      ${code === undefined ? sql`` : sql`and code = ${code}`}
      ${codes === undefined ? sql`` : sql`and code = any(${[...codes]}::text[])`}
      ${until ? sql`and first_at < ${until} and day <= (${until}::timestamptz at time zone 'UTC')::date` : sql``}
      ${source === undefined ? sql`` : sql`and source = ${source}`}
      ${field === undefined ? sql`` : sql`and field = ${field}`}
      ${since ? sql`and last_at >= ${since} and day >= (${since}::timestamptz at time zone 'UTC')::date` : sql``}
      ${after ? sql`and (i.day, i.code, i.source, i.field) < (${after.day}::date, ${after.code}, ${after.source}, ${after.field})` : sql``}
    order by i.day desc, i.code desc, i.source desc, i.field desc
    limit ${limit}`.execute(database);
  return rows;
}
