/**
 * A usage summary over two years, large account against empty account. The large one has 10,000,000
 * preview runs in five workspaces by ten users. Days are closed as a worker closes them, so the last
 * two are added up run by run. One client at a time, warm, in turn; of the log its first page too.
 */
import { closeUsageDays } from '@sluice/database/credits/usage-watermarks';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { addDays, utcDayOf } from '@sluice/domain/values/utc-day';
import { sql } from 'kysely';
import { describeLoad, type Findings } from './billing-findings.ts';
import { loadWithWrk, type LoadResult } from './load.ts';
import { median } from './report.ts';
import { withWorld } from './world.ts';

export interface SummaryOptions {
  readonly durationSeconds: number;
  readonly rounds: number;
  readonly runCount: number;
}

const DAYS = 731;
const WORKSPACES = 5;
const USERS = 10;
const TODAY = utcDayOf(Date.now());
const FIRST_DAY = addDays(TODAY, 1 - DAYS);

const FULL = { accountId: DEMO.accountId, token: DEMO.accountToken };
const EMPTY = { accountId: DEMO.invoicedAccountId, token: DEMO.invoicedAccountToken };
const range = `start=${FIRST_DAY}&end=${TODAY}`;
const READS = {
  'summary by month': `usage_summaries?${range}`,
  'summary by month and user': `usage_summaries?${range}&group_by=user`,
  'summary by day': `usage_summaries?${range}&granularity=day`,
  'first page of the log': `usage_log?${range}`,
} as const;
type Read = keyof typeof READS;

export async function benchSummaries({
  durationSeconds,
  rounds,
  runCount,
}: SummaryOptions): Promise<Findings> {
  return withWorld('none', async (world) => {
    const { database } = world;
    const beganAtMs = performance.now();
    await insertRuns(database, runCount);
    const insertedAtMs = performance.now();
    while ((await closeUsageDays(database, addDays(TODAY, -2), 100)) > 0);
    const closedAtMs = performance.now();
    await sql`vacuum analyze inbox_preview_runs, inbox_preview_days, usage_watermarks`.execute(
      database,
    );
    console.log(
      `${runCount.toLocaleString('en')} runs inserted in ${seconds(insertedAtMs - beganAtMs)} s, ` +
        `${DAYS - 2} days closed in ${seconds(closedAtMs - insertedAtMs)} s`,
    );
    const server = await world.startService('api', 18_093, { API_RATE_LIMIT_PER_MINUTE: '0' });
    const pathOf = (account: typeof FULL | typeof EMPTY, read: Read) =>
      `/v1/accounts/${account.accountId}/billing/inbox_previews/${READS[read]}`;
    const measure = async (account: typeof FULL | typeof EMPTY, read: Read) => {
      const result = await loadWithWrk({
        url: server.url,
        method: 'GET',
        paths: [pathOf(account, read)],
        headers: { Authorization: `Bearer ${account.token}` },
        bodies: [],
        connections: 1,
        durationSeconds,
      });
      if (result.failures > 0) throw new Error(`${read}: ${result.failures} failed requests`);
      return result;
    };
    await checkCorrectness(server.url + pathOf(FULL, 'summary by day'), runCount);

    const results = new Map<Read, { empty: LoadResult; full: LoadResult }[]>();
    for (let round = 0; round <= rounds; round++) {
      for (const read of Object.keys(READS) as Read[]) {
        const pair = { empty: await measure(EMPTY, read), full: await measure(FULL, read) };
        // The first round only warms up.
        if (round === 0) continue;
        results.set(read, [...(results.get(read) ?? []), pair]);
        console.log(describeLoad(`${round}/${rounds} ${read}, empty`, pair.empty));
        console.log(describeLoad(`${round}/${rounds} ${read}, full`, pair.full));
      }
    }
    const each = (
      valuesOf: (
        read: Read,
        pairs: readonly { empty: LoadResult; full: LoadResult }[],
      ) => [string, number][],
    ) => Object.fromEntries([...results].flatMap(([read, pairs]) => valuesOf(read, pairs)));
    return {
      ratios: each((read, pairs) => [
        [
          `${read} p99 full/empty`,
          median(pairs.map(({ full, empty }) => full.p99Ms / empty.p99Ms)),
        ],
      ]),
      rates: {},
      latencyMs: each((read, pairs) => [
        [`${read} empty p99`, median(pairs.map(({ empty }) => empty.p99Ms))],
        [`${read} full p50`, median(pairs.map(({ full }) => full.p50Ms))],
        [`${read} full p99`, median(pairs.map(({ full }) => full.p99Ms))],
      ]),
      details: {
        runs: runCount,
        workspaces: WORKSPACES,
        users: USERS,
        days_run_by_run: 2,
        closing_seconds: Number(seconds(closedAtMs - insertedAtMs)),
      },
      postgres: world.versions.postgres,
    };
  });
}

const seconds = (ms: number): string => (ms / 1_000).toFixed(1);

/** Spread evenly over the days; indexes are made after the rows, for that is faster. */
async function insertRuns(database: Database, runCount: number): Promise<void> {
  const { accountId } = FULL;
  await sql`
    insert into environments (account_id, environment_id, name, webhook_signing_key)
    select ${accountId}, 1000 + n, 'Workspace ' || n, 'key' from generate_series(1, ${WORKSPACES}::int) n`.execute(
    database,
  );
  await sql`
    insert into users (account_id, user_id, email, first_name, last_name, role, status)
    select ${accountId}, 1000 + n, n || '@bench.example', 'User', n::text, 'member', 'active'
      from generate_series(1, ${USERS}::int) n`.execute(database);
  await sql`
    insert into usage_watermarks values (${accountId}, ${addDays(FIRST_DAY, -1)}::date)`.execute(
    database,
  );
  await database.transaction().execute(async (transaction) => {
    await sql`set local session_replication_role = replica`.execute(transaction);
    await sql`set local maintenance_work_mem = '512MB'`.execute(transaction);
    await sql`alter table inbox_preview_runs drop constraint inbox_preview_runs_pkey`.execute(
      transaction,
    );
    const { rows: indexes } = await sql<{ name: string; definition: string }>`
      select indexname as name, indexdef as definition from pg_indexes
       where tablename = 'inbox_preview_runs'`.execute(transaction);
    for (const { name } of indexes) await sql`drop index ${sql.id(name)}`.execute(transaction);
    await sql`
      insert into inbox_preview_runs
        (account_id, preview_job_id, usage_day, environment_id, user_id, quantity, refunded, recorded_at)
      select ${accountId}, 'job-' || n, ${FIRST_DAY}::date + (n::bigint * ${DAYS}::int / ${runCount}::int)::int,
             1001 + n % ${WORKSPACES}::int, 1001 + n / ${WORKSPACES}::int % ${USERS}::int, 1 + n % 3,
             (n % 100 = 0)::int,
             ${FIRST_DAY}::timestamptz + n * (interval '1 day' * ${DAYS}::int / ${runCount}::int)
        from generate_series(0, ${runCount - 1}::int) n`.execute(transaction);
    await sql`
      alter table inbox_preview_runs add primary key (account_id, preview_job_id)`.execute(
      transaction,
    );
    for (const { definition } of indexes) await sql.raw(definition).execute(transaction);
  });
}

/** The sums are equal to the inserted runs. */
async function checkCorrectness(url: string, runCount: number): Promise<void> {
  const answer = await fetch(url, { headers: { Authorization: `Bearer ${FULL.token}` } });
  const {
    totals,
    series,
    rollup_through: through,
  } = (await answer.json()) as {
    totals: { runs: number; used: number };
    series: { used: number }[];
    rollup_through: string;
  };
  const used = series.reduce((sum, point) => sum + point.used, 0);
  const triples = Math.floor(runCount / 3);
  const expected = triples * 6 + (runCount % 3 === 0 ? 0 : runCount % 3 === 1 ? 1 : 3);
  if (totals.runs !== runCount || totals.used !== expected || used !== expected)
    throw new Error(`${runCount} runs of ${expected} are summed up as ${JSON.stringify(totals)}`);
  if (through !== addDays(TODAY, -2)) throw new Error(`days are closed through ${through}`);
}
