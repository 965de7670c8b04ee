/**
 * The issues log as the API shows it: one row a day, code, source and field, newest day first. The issues of workspace 0,
 * which is no tenant's, are summed for the operator.
 */
import type { IssueCode } from '@sluice/domain/operations/issue';
import { sql } from 'kysely';
import { answeredWithin, type DatabaseOrTransaction } from '../connection/connection.ts';

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
 * were read. A workspace has some thousand rows a day at most (`issue-field-bounds.ts`).
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

export interface UnknownKeys {
  readonly count: number;
  /** Of the counted calls; null without a call. */
  readonly firstAt: Date | null;
  readonly lastAt: Date | null;
  /** By kind of call, the latest first. */
  readonly latest: readonly {
    readonly source: string;
    /** The last characters of the last key, or site id; null if no call had one. */
    readonly hint: string | null;
    readonly count: number;
    readonly lastAt: Date;
  }[];
}

/** On Citus the rows are on one node, which may be away. */
const UNKNOWN_KEYS_MS_MAX = 10_000;

/**
 * Calls whose credentials name no workspace, since `sinceMs`. Issues are counted by day in UTC: if one call of a kind and
 * a day came since then, all calls of this kind and day are counted.
 *
 * By the primary key (environment_id, day, code, source, field). A source is a kind of call, so a day has some dozen rows.
 *
 * @throws Error if there is no answer within ten seconds.
 */
export async function findUnknownKeys(
  database: DatabaseOrTransaction,
  sinceMs: number,
  latestCountMax: number,
): Promise<UnknownKeys> {
  const since = new Date(sinceMs);
  const { rows } = await sql<{
    source: string;
    hint: string | null;
    count: string;
    lastAt: Date;
    allCount: string;
    allFirstAt: Date;
  }>`${answeredWithin(UNKNOWN_KEYS_MS_MAX)}
    select source, sum(count) as count, max(last_at) as "lastAt",
           (array_agg(sample order by last_at desc) filter (where sample is not null))[1] as hint,
           sum(sum(count)) over () as "allCount", min(min(first_at)) over () as "allFirstAt"
    from ingestion_issues
    where environment_id = 0 and day >= (${since}::timestamptz at time zone 'UTC')::date
      and code = 'authentication_failed' and last_at >= ${since}
    group by source
    order by max(last_at) desc, source
    limit ${latestCountMax}`.execute(database);
  const [newest] = rows;
  return {
    count: Number(newest?.allCount ?? 0),
    firstAt: newest?.allFirstAt ?? null,
    lastAt: newest?.lastAt ?? null,
    latest: rows.map(({ source, hint, count, lastAt }) => ({
      source,
      hint,
      count: Number(count),
      lastAt,
    })),
  };
}
