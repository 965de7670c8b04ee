/**
 * Run starts and debits over HTTP, against direct calls. The calls run the use cases behind the routes
 * (`api/src/billing/start-purchase-workflow.ts`, `api/src/usage/record-preview-run.ts`) in this process, with the
 * same concurrency and connections.
 *
 * The routes also parse the request, look up the token, check role, body and owner, read the account and answer; a
 * start wakes its worker. Each start uses its own account, so its token is never found in the cache; tokens were used
 * within the last minute, so their last use is not written again. Each debit is of its own job. Afterwards the rows
 * are counted: their number must be the number of answers.
 */
import { recordPreviewRun } from '@sluice/api/usage/record-preview-run';
import { startPurchaseWorkflow } from '@sluice/api/billing/start-purchase-workflow';
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { pricePack } from '@sluice/domain/billing/catalogue';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { sql } from 'kysely';
import {
  DEBITED_ACCOUNTS,
  FIRST_ACCOUNT,
  grantPreviews,
  insertAccounts,
  tokenOf,
  useTokens,
} from './billing-accounts.ts';
import { describeLoad, type Findings } from './billing-findings.ts';
import type { ChildServer } from './child-server.ts';
import { loadWithWrk, type Call, type LoadResult } from './load.ts';
import { median } from './report.ts';
import { withWorld } from './world.ts';

export interface WriteOptions {
  readonly durationSeconds: number;
  readonly rounds: number;
  readonly connections: number;
}

/** The default of a process (`DATABASE_POOL_MAX`). */
const POOL_MAX = 10;
/** More than either side starts or debits in a second. */
const CALLS_A_SECOND_MAX = 2_000;
const PACK = 'pack_100';
const WARM_UP_SECONDS = 1;

const newId = createIdGenerator(Date.now);
const ORIGIN = { actor: { type: 'system' } } as const;

type Work = 'starts' | 'debits';
type Contender = 'sql' | 'ours';

export async function benchWrites(options: WriteOptions): Promise<Findings> {
  const { durationSeconds, rounds, connections } = options;
  return withWorld('full', async (world) => {
    const database = createDatabase({
      url: world.databaseUrl,
      poolMax: POOL_MAX,
      applicationName: 'bench sql',
      onError: () => undefined,
    });
    world.onClose(() => database.destroy());
    const callsMax = CALLS_A_SECOND_MAX * durationSeconds;
    await insertAccounts(database, (rounds + 1) * 2 * callsMax);
    await grantPreviews(database);
    const server = await world.startService('api', 18_093, {
      REDIS_URL: world.redisServer.url,
      API_RATE_LIMIT_PER_MINUTE: '0',
      DATABASE_POOL_MAX: String(POOL_MAX),
    });

    /** Enough unused accounts for one turn. */
    let nextAccount = FIRST_ACCOUNT;
    const takeAccounts = (): number[] => {
      const first = nextAccount;
      nextAccount += callsMax;
      return Array.from({ length: callsMax }, (_, index) => first + index);
    };
    const measure = async (
      work: Work,
      contender: Contender,
      seconds: number,
    ): Promise<LoadResult> => {
      const accountIds = work === 'starts' ? takeAccounts() : [];
      if (contender === 'ours') await useTokens(server, accountIds, connections);
      const before = await countRows(database, work);
      const result =
        contender === 'ours'
          ? await loadWithWrk({
              url: server.url,
              method: 'POST',
              headers: {},
              bodies: [],
              calls: work === 'starts' ? startCalls(accountIds) : debitCalls(callsMax),
              connections,
              durationSeconds: seconds,
            })
          : await callDirectly(
              work === 'starts' ? startDirectly(database, accountIds) : debitDirectly(database),
              connections,
              seconds,
            );
      const made = (await countRows(database, work)) - before;
      // At the end of a load, up to `connections` calls are cut off: they are made but not answered.
      if (result.failures > 0 || made < result.requests || made > result.requests + connections)
        throw new Error(
          `${work} ${contender}: ${result.requests} answered, ${result.failures} of them refused, ${made} made`,
        );
      return result;
    };

    const results: Record<Work, Record<Contender, LoadResult[]>> = {
      starts: { sql: [], ours: [] },
      debits: { sql: [], ours: [] },
    };
    for (const work of ['starts', 'debits'] as const) {
      await checkCorrectness(server, database, work);
      for (const contender of ['sql', 'ours'] as const)
        await measure(work, contender, WARM_UP_SECONDS);
      for (let round = 1; round <= rounds; round++) {
        for (const contender of ['sql', 'ours'] as const) {
          const result = await measure(work, contender, durationSeconds);
          results[work][contender].push(result);
          console.log(describeLoad(`${round}/${rounds} ${work} ${contender}`, result));
        }
      }
    }
    const each = (valueOf: (work: Work, contender: Contender) => [string, number][]) =>
      Object.fromEntries(
        (['starts', 'debits'] as const).flatMap((work) =>
          (['sql', 'ours'] as const).flatMap((contender) => valueOf(work, contender)),
        ),
      );
    return {
      ratios: Object.fromEntries(
        (['starts', 'debits'] as const).map((work) => [
          `${work} ours/sql`,
          median(
            results[work].ours.map(
              (result, index) =>
                result.requestsPerSecond / (results[work].sql[index]?.requestsPerSecond ?? NaN),
            ),
          ),
        ]),
      ),
      rates: each((work, contender) => [
        [
          `${work} ${contender}`,
          median(results[work][contender].map((result) => result.requestsPerSecond)),
        ],
      ]),
      latencyMs: each((work, contender) => [
        [`${work} ${contender} p50`, median(results[work][contender].map((one) => one.p50Ms))],
        [`${work} ${contender} p99`, median(results[work][contender].map((one) => one.p99Ms))],
      ]),
      details: { connections, pool: POOL_MAX, debited_accounts: DEBITED_ACCOUNTS },
      postgres: world.versions.postgres,
    };
  });
}

const purchase = pricePack(readCatalogue(undefined), PACK);
if (!purchase) throw new Error(`the built-in catalogue has no ${PACK}`);

/** One call a result, on the next account each. */
function startDirectly(database: Database, accountIds: readonly number[]) {
  const deps = {
    database,
    wakePurchaseWorkflow: async () => {},
    newId,
    now: Date.now,
    cardPaymentMs: 3_600_000,
  };
  let turn = 0;
  return async (): Promise<void> => {
    const accountId = accountIds[turn++ % accountIds.length] as number;
    const started = await startPurchaseWorkflow(deps, {
      accountId,
      kind: 'inbox_previews',
      rail: 'invoiced',
      content: {
        type: 'purchase',
        purchase: purchase as NonNullable<typeof purchase>,
        contact: { name: 'Bench', email: `account-${accountId}@billing.invalid` },
      },
      sameness: { pack: PACK },
      origin: ORIGIN,
    });
    if (started.outcome !== 'created') throw new Error(`a start is ${started.outcome}`);
  };
}

let jobCount = 0;
const nextJob = (): { previewJobId: string; accountId: number } => {
  const number = ++jobCount;
  return {
    previewJobId: `job-${number}`,
    accountId: FIRST_ACCOUNT + (number % DEBITED_ACCOUNTS),
  };
};

function debitDirectly(database: Database) {
  return async (): Promise<void> => {
    const { accountId, previewJobId } = nextJob();
    const recorded = await recordPreviewRun(
      { database, now: Date.now },
      {
        accountId,
        previewJobId,
        environmentId: accountId,
        userId: null,
        quantity: 1,
        hasAllowance: true,
        origin: ORIGIN,
      },
    );
    if (recorded.outcome !== 'recorded') throw new Error(`a debit is ${recorded.outcome}`);
  };
}

const callOf = (accountId: number, path: string, body: object): Call => ({
  path: `/v1/accounts/${accountId}/billing/inbox_previews/${path}`,
  headers: {
    Authorization: `Bearer ${tokenOf(accountId)}`,
    'Content-Type': 'application/json',
  },
  body: JSON.stringify(body),
});

const startCalls = (accountIds: readonly number[]): Call[] =>
  accountIds.map((accountId) => callOf(accountId, 'invoiced_purchase', { pack: PACK }));

const debitCalls = (count: number): Call[] =>
  Array.from({ length: count }, () => {
    const { accountId, previewJobId } = nextJob();
    return callOf(accountId, 'runs', {
      preview_job_id: previewJobId,
      environment_id: accountId,
      user_id: null,
      quantity: 1,
    });
  });

/** `concurrency` at a time for so long. */
async function callDirectly(
  call: () => Promise<void>,
  concurrency: number,
  seconds: number,
): Promise<LoadResult> {
  const durationsMs: number[] = [];
  const beganAtMs = performance.now();
  const endsAtMs = beganAtMs + seconds * 1_000;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (performance.now() < endsAtMs) {
        const calledAtMs = performance.now();
        await call();
        durationsMs.push(performance.now() - calledAtMs);
      }
    }),
  );
  const sorted = durationsMs.toSorted((one, other) => one - other);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] as number;
  return {
    requests: durationsMs.length,
    requestsPerSecond: durationsMs.length / ((performance.now() - beganAtMs) / 1_000),
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    maxMs: at(1),
    failures: 0,
    clientCpu: NaN,
  };
}

async function countRows(database: Database, work: Work): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int from ${sql.table(work === 'starts' ? 'runs' : 'inbox_preview_runs')}`.execute(
    database,
  );
  return rows[0]?.count ?? 0;
}

/** Both do their work: a start makes a run, a debit takes a credit. */
async function checkCorrectness(
  server: ChildServer,
  database: Database,
  work: Work,
): Promise<void> {
  const { path, headers, body } = (
    work === 'starts' ? startCalls([FIRST_ACCOUNT - 1]) : debitCalls(1)
  )[0] as Call;
  const before = await countRows(database, work);
  for (let time = 0; time < 2; time++) {
    const answer = await fetch(server.url + path, { method: 'POST', headers, body: body ?? '' });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  }
  const made = (await countRows(database, work)) - before;
  if (made !== 1) throw new Error(`${path} twice made ${made} rows`);
}
