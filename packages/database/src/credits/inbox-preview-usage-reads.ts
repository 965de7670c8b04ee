/**
 * Usage of inbox previews as it is read: the log, and sums of it. A day that is closed comes from its
 * sums, a later one from its runs; the mark between them is read in the same statement, so each day is
 * read from one of the two and no reader can meet a mark that moves (`usage-watermarks.ts`).
 *
 * A paged log keeps the mark of its first page. Runs stay, so a day that is closed meanwhile is still read run by
 * run, and no entry is shown twice or left out.
 *
 * Indexes: the primary key of `inbox_preview_days` and `inbox_preview_runs_by_day`, each one range of the
 * account's days, and read without the tables where Postgres has vacuumed them. Filters by workspace and
 * user are of rows in that range.
 */
import type { UsageCell } from '@sluice/domain/billing/usage-summary';
import type { DayRange, UtcDay } from '@sluice/domain/values/utc-day';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { fromUserId, toUserId } from './inbox-preview-runs.ts';
import { dayText } from './usage-watermarks.ts';

export interface UsageFilter extends DayRange {
  readonly accountId: number;
  readonly environmentId: number | undefined;
  readonly userId: number | undefined;
}

/** One run, or one user's use in one workspace on one closed day. */
export type UsageEntry = {
  readonly day: UtcDay;
  readonly environmentId: number;
  readonly userId: number | null;
  readonly quantity: number;
  readonly refunded: number;
} & (
  | { readonly source: 'run'; readonly previewJobId: string; readonly recordedAt: Date }
  | { readonly source: 'rollup' }
);

/** The position of an entry in the log. */
export type UsagePosition =
  | {
      readonly source: 'run';
      readonly day: UtcDay;
      readonly recordedAtMs: number;
      readonly previewJobId: string;
    }
  | {
      readonly source: 'rollup';
      readonly day: UtcDay;
      readonly environmentId: number;
      readonly userId: number | null;
    };

export interface UsageLog {
  readonly entries: readonly UsageEntry[];
  /** Of the whole range, however it is paged. */
  readonly total: number;
  /** The last day that is read from its sums; null if all days are read from runs. */
  readonly closedThrough: UtcDay | null;
}

export interface UsageLogPage {
  readonly order: 'asc' | 'desc';
  readonly after: UsagePosition | undefined;
  /** Of the first page, on the ones that follow. */
  readonly closedThrough: UtcDay | undefined;
  readonly limit: number;
}

/** The sums to read: the coarsest that distinguish the wanted groups. */
type Grain = 'workspace_user' | 'workspace' | 'user' | 'day';

function grainOf(tellsWorkspaces: boolean, tellsUsers: boolean): Grain {
  if (tellsWorkspaces) return tellsUsers ? 'workspace_user' : 'workspace';
  return tellsUsers ? 'user' : 'day';
}

const inFilter = (filter: UsageFilter) => sql`
  account_id = ${filter.accountId}
  and usage_day >= ${filter.start}::date and usage_day <= ${filter.end}::date
  ${filter.environmentId === undefined ? sql`` : sql`and environment_id = ${filter.environmentId}`}
  ${filter.userId === undefined ? sql`` : sql`and user_id = ${filter.userId}`}`;

/** At most one of the two is true of a day. */
const isClosed = (grain: Grain) =>
  sql`grain = ${grain} and usage_day <= (select closed_through from mark)`;
const isOpen = sql`usage_day > (select coalesce(closed_through, '-infinity') from mark)`;

interface LogRow {
  readonly total: string;
  readonly closedThrough: UtcDay | null;
  readonly source: 'run' | 'rollup' | null;
  readonly day: UtcDay;
  readonly environmentId: number;
  readonly userId: number;
  readonly quantity: string;
  readonly refunded: string;
  readonly recordedAt: Date;
  readonly previewJobId: string;
}

/** One page of the log; entries of a day in the order in which they were recorded, or by workspace and user. */
export async function listUsage(
  database: DatabaseOrTransaction,
  filter: UsageFilter,
  { order, after, closedThrough, limit }: UsageLogPage,
): Promise<UsageLog> {
  const direction = sql.raw(order);
  const beyond = sql.raw(order === 'asc' ? '>' : '<');
  // A position among the runs lies after every closed day, one among the sums before every run.
  const ofDays =
    after?.source === 'rollup'
      ? sql`(usage_day, environment_id, user_id)
              ${beyond} (${after.day}::date, ${after.environmentId}::int, ${fromUserId(after.userId)}::int)`
      : sql`${after === undefined || order === 'desc'}::boolean`;
  const ofRuns =
    after?.source === 'run'
      ? sql`(usage_day, recorded_at, preview_job_id)
              ${beyond} (${after.day}::date, ${new Date(after.recordedAtMs)}::timestamptz, ${after.previewJobId}::text)`
      : sql`${after === undefined || order === 'asc'}::boolean`;
  const { rows } = await sql<LogRow>`
    with mark as materialized (
      select least(max(closed_through), ${closedThrough ?? null}::date) as closed_through
        from usage_watermarks where account_id = ${filter.accountId}
    ), counted as (
      select (select count(*) from inbox_preview_days where ${inFilter(filter)} and ${isClosed('workspace_user')})
               + (select count(*) from inbox_preview_runs where ${inFilter(filter)} and ${isOpen}) as total
    ), page as (
      (select 'rollup' as source, usage_day, null::timestamptz as recorded_at, null::text as preview_job_id,
              environment_id, user_id, used as quantity, refunded
         from inbox_preview_days
        where ${inFilter(filter)} and ${isClosed('workspace_user')} and ${ofDays}
        order by usage_day ${direction}, environment_id ${direction}, user_id ${direction} limit ${limit})
      union all
      (select 'run', usage_day, recorded_at, preview_job_id, environment_id, user_id, quantity, refunded
         from inbox_preview_runs where ${inFilter(filter)} and ${isOpen} and ${ofRuns}
        order by usage_day ${direction}, recorded_at ${direction}, preview_job_id ${direction}
        limit ${limit})
    )
    select c.total, ${dayText('m.closed_through')} as "closedThrough", p.source,
           ${dayText('p.usage_day')} as day, p.environment_id as "environmentId", p.user_id as "userId",
           p.quantity, p.refunded, p.recorded_at as "recordedAt", p.preview_job_id as "previewJobId"
      from mark m cross join counted c left join page p on true
     order by p.usage_day ${direction}, p.recorded_at ${direction}, p.preview_job_id ${direction},
              p.environment_id ${direction}, p.user_id ${direction}
     limit ${limit}`.execute(database);
  return {
    entries: rows.flatMap((row) => (row.source === null ? [] : [toEntry(row)])),
    total: Number(rows[0]?.total),
    closedThrough: rows[0]?.closedThrough ?? null,
  };
}

function toEntry(row: LogRow): UsageEntry {
  const entry = {
    day: row.day,
    environmentId: row.environmentId,
    userId: toUserId(row.userId),
    quantity: Number(row.quantity),
    refunded: Number(row.refunded),
  };
  return row.source === 'run'
    ? { ...entry, source: 'run', previewJobId: row.previewJobId, recordedAt: row.recordedAt }
    : { ...entry, source: 'rollup' };
}

export interface UsageSumsRead {
  readonly cells: readonly UsageCell[];
  /** The last day that is read from its sums; null if all days are read from runs. */
  readonly closedThrough: UtcDay | null;
}

/**
 * Usage by bucket and group.
 *
 * @param bucketStarts - the first days of the buckets, ascending; the first one is the range's.
 */
export async function sumUsage(
  database: DatabaseOrTransaction,
  filter: UsageFilter,
  bucketStarts: readonly UtcDay[],
  groupBy: 'none' | 'workspace' | 'user',
): Promise<UsageSumsRead> {
  const group = {
    none: sql`null::int`,
    workspace: sql`environment_id`,
    user: sql`user_id`,
  }[groupBy];
  const grain = grainOf(
    filter.environmentId !== undefined || groupBy === 'workspace',
    filter.userId !== undefined || groupBy === 'user',
  );
  const { rows } = await sql<{
    closedThrough: UtcDay | null;
    bucket: number | null;
    group: number | null;
    runs: string;
    used: string;
    refunded: string;
  }>`
    with mark as materialized (
      select max(closed_through) as closed_through
        from usage_watermarks where account_id = ${filter.accountId}
    ), summed as (
      select width_bucket(usage_day, ${[...bucketStarts]}::date[]) - 1 as bucket, ${group} as key,
             sum(runs) as runs, sum(used) as used, sum(refunded) as refunded
        from (
          select usage_day, environment_id, user_id, runs, used, refunded
            from inbox_preview_days where ${inFilter(filter)} and ${isClosed(grain)}
          union all
          select usage_day, environment_id, user_id, 1, quantity, refunded
            from inbox_preview_runs where ${inFilter(filter)} and ${isOpen}
        ) as usage
       group by 1, 2
    )
    select ${dayText('m.closed_through')} as "closedThrough", s.bucket, s.key as "group", s.runs, s.used,
           s.refunded
      from mark m left join summed s on true`.execute(database);
  return {
    closedThrough: rows[0]?.closedThrough ?? null,
    cells: rows.flatMap((row) =>
      row.bucket === null
        ? []
        : [
            {
              bucket: row.bucket,
              group: row.group === null || groupBy !== 'user' ? row.group : toUserId(row.group),
              runs: Number(row.runs),
              used: Number(row.used),
              refunded: Number(row.refunded),
            },
          ],
    ),
  };
}

export interface UsageNames {
  readonly workspaces: ReadonlyMap<number, string>;
  readonly users: ReadonlyMap<number, string>;
}

/** Present names of workspaces and users; deleted ones have no name. Indexes: primary keys. */
export async function findUsageNames(
  database: DatabaseOrTransaction,
  accountId: number,
  environmentIds: readonly number[],
  userIds: readonly number[],
): Promise<UsageNames> {
  const { rows } = await sql<{ kind: 'workspace' | 'user'; id: number; name: string }>`
    select 'workspace' as kind, environment_id as id, name from environments
     where account_id = ${accountId} and environment_id = any(${[...new Set(environmentIds)]}::int[])
    union all
    select 'user', user_id, concat_ws(' ', nullif(first_name, ''), nullif(last_name, '')) from users
     where account_id = ${accountId} and user_id = any(${[...new Set(userIds)]}::int[])`.execute(
    database,
  );
  const namesOf = (kind: 'workspace' | 'user') =>
    new Map(rows.filter((row) => row.kind === kind).map((row) => [row.id, row.name]));
  return { workspaces: namesOf('workspace'), users: namesOf('user') };
}
