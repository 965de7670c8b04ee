/** Plans of Postgres for the statements of usage. Several accounts used much. */
import type { Database } from '@sluice/database/connection/connection';
import { findPreviewRun, findUsageOwners } from '@sluice/database/credits/inbox-preview-runs';
import {
  findUsageNames,
  listUsage,
  sumUsage,
  type UsageFilter,
  type UsageLogPage,
} from '@sluice/database/credits/inbox-preview-usage-reads';
import { closeUsageDays } from '@sluice/database/credits/usage-watermarks';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import { explain, rowsRead } from '../support/explain.ts';
import { FILL_TIMEOUT_MS } from '../support/fill-timeout.ts';

const ACCOUNT = 2;
const ACCOUNTS = 4;
const DAYS = 100;
const RUNS_A_DAY = 100;
/** Of a day: five workspaces, two users. */
const SUMS_A_DAY = 10;

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
  await sql`
    insert into accounts (account_id, name) select n, 'A' from generate_series(1, 1000) n`.execute(
    database,
  );
  await sql`
    insert into environments (account_id, environment_id, name, webhook_signing_key)
    select 1 + n % 1000, n, 'a', 'key' from generate_series(1, 5000) n`.execute(database);
  await sql`
    insert into users (account_id, user_id, email, first_name, last_name, role, status)
    select 1 + n % 1000, n, n || '@example.com', 'A', 'B', 'member', 'active'
      from generate_series(1, 5000) n`.execute(database);
  await sql`
    insert into usage_watermarks select n, date '2026-03-31' from generate_series(1, 1000) n`.execute(
    database,
  );
  await sql`
    insert into inbox_preview_runs
      (account_id, preview_job_id, usage_day, environment_id, user_id, quantity, recorded_at)
    select a, 'job-' || d || '-' || n, date '2026-03-31' - ${DAYS}::int + 2 + d, a - 1 + 1000 * (n % 5),
           n % 2, 1, timestamptz '2026-01-01Z' + n * interval '1 second'
      from generate_series(1, ${ACCOUNTS}::int) a, generate_series(0, ${DAYS - 1}::int) d,
           generate_series(0, ${RUNS_A_DAY - 1}::int) n
     where a - 1 + 1000 * (n % 5) > 0`.execute(database);
  await sql`update usage_watermarks set closed_through = '2025-12-01'`.execute(database);
  while ((await closeUsageDays(database, '2026-03-31', 1_000)) > 0);
  await sql`vacuum analyze`.execute(database);
}, FILL_TIMEOUT_MS);

const filter: UsageFilter = {
  accountId: ACCOUNT,
  start: '2026-03-02',
  end: '2026-04-01',
  environmentId: undefined,
  userId: undefined,
};
/** Thirty days that are closed, and one that is not. */
const COUNTED = 30 * SUMS_A_DAY + RUNS_A_DAY;
/** 51 runs, and the sums. Alone on its server, Postgres knows that all rows are visible: then it sorts so few sums. */
const PAGE = 30 * SUMS_A_DAY + 60;
const page: UsageLogPage = { order: 'desc', after: undefined, closedThrough: undefined, limit: 51 };
const atRun = {
  source: 'run',
  day: '2026-04-01',
  recordedAtMs: Date.parse('2026-01-01T00:01:00Z'),
  previewJobId: 'x',
} as const;
const atSums = { source: 'rollup', day: '2026-03-10', environmentId: 1001, userId: 1 } as const;

test.each<[string, number, (database: Database) => Promise<unknown>]>([
  ['the first page of the log', COUNTED + PAGE, (db) => listUsage(db, filter, page)],
  [
    'a page among the runs',
    COUNTED + PAGE,
    (db) => listUsage(db, filter, { ...page, after: atRun }),
  ],
  [
    'a page among the sums, the other way',
    COUNTED + PAGE,
    (db) => listUsage(db, filter, { ...page, order: 'asc', after: atSums }),
  ],
  [
    'a page of one workspace and user',
    2 * COUNTED + 10,
    (db) => listUsage(db, { ...filter, environmentId: 1001, userId: 1 }, page),
  ],
  [
    'sums by month',
    COUNTED + 1,
    (db) => sumUsage(db, filter, ['2026-03-02', '2026-04-01'], 'none'),
  ],
  ['sums by user', 30 * 2 + RUNS_A_DAY + 1, (db) => sumUsage(db, filter, ['2026-03-02'], 'user')],
  [
    'sums of one workspace',
    30 * 5 + RUNS_A_DAY + 1,
    (db) => sumUsage(db, { ...filter, environmentId: 1001 }, ['2026-03-02'], 'workspace'),
  ],
  ['a run', 1, (db) => findPreviewRun(db, ACCOUNT, 'job-7-7')],
  [
    'whose a workspace and a user are',
    2,
    (db) => findUsageOwners(db, ACCOUNT, { environmentId: 1001, userId: 1001 }),
  ],
  ['names', 8, (db) => findUsageNames(db, ACCOUNT, [1, 1001, 2001, 2], [1, 1001])],
])('%s: by index, at most %i rows read', async (_name, rowsMax, use) => {
  const nodes = await explain(database, use);
  const plan = nodes
    .map(
      (node) =>
        `${node['Node Type']} ${node['Index Name']} ${node['Actual Rows']}×${node['Actual Loops']} -${node['Rows Removed by Filter'] ?? 0}`,
    )
    .join('\n');
  expect(
    nodes.map((node) => node['Node Type']),
    plan,
  ).not.toContain('Seq Scan');
  expect(rowsRead(nodes), plan).toBeLessThanOrEqual(rowsMax);
});
