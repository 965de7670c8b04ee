/** Purchases in manual review: counted, listed and released. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { insertStepIntent, listPurchaseSteps } from '../../../src/billing/purchase-steps.ts';
import {
  claimPurchaseWorkflow,
  listDuePurchases,
  sendPurchaseToReview,
} from '../../../src/billing/purchase-workflows.ts';
import {
  countPurchasesInReview,
  listPurchasesInReview,
  lockPurchaseInReview,
  releasePurchaseFromReview,
} from '../../../src/billing/purchases-in-review.ts';
import type { Database } from '../../../src/connection/connection.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { BY_TEST, createTestDatabase, untilLockWaiters } from '../../../src/testing/testing.ts';

const NOW_MS = Date.parse('2026-03-01T00:00:00Z');

/** With an account and a run of each number; the ones of odd numbers have failed. */
async function startRuns(count: number): Promise<Database> {
  const { database } = await createTestDatabase();
  await sql`insert into accounts (account_id, name) select n, 'A' from generate_series(1, ${count}::int) n`.execute(
    database,
  );
  await sql`insert into audit_chains (account_id) select n from generate_series(1, ${count}::int) n on conflict do nothing`.execute(
    database,
  );
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, next_at, created_at, status, finished_at)
    select n, 'r' || n, 'invoiced', 'credits', 'invoiced', 'f', '{}', '{}', '2100-01-01', now() - n * interval '1 s',
           case when n % 2 = 0 then 'pending' else 'failed' end, case when n % 2 = 1 then now() end
      from generate_series(1, ${count}::int) n`.execute(database);
  return database;
}

test('purchases in review are counted up to a bound, pending or ended, through their own index', async () => {
  const database = await startRuns(3_000);
  expect(await countPurchasesInReview(database, 10)).toBe(0);
  await sql`update runs set review_reason = 'paid after it was declined' where account_id in (1, 2, 3)`.execute(
    database,
  );
  expect(await countPurchasesInReview(database, 10)).toBe(3);
  expect(await countPurchasesInReview(database, 2)).toBe(2);

  await sql`vacuum analyze runs`.execute(database);
  const [statement] = await statementsSentBy(() => countPurchasesInReview(database, 10));
  const { rows } = await sql
    .raw<{ 'QUERY PLAN': string }>(`explain ${String(statement?.text).replace('$1', '10')}`)
    .execute(database);
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('runs_set_aside');
});

test('purchases in review are listed with their reasons, the oldest first, up to a bound', async () => {
  const database = await startRuns(4);
  for (const accountId of [1, 2, 4])
    await sendPurchaseToReview(database, { accountId, runId: `r${accountId}` }, `why ${accountId}`);
  const listed = await listPurchasesInReview(database, 10);
  expect(listed).toMatchObject([
    { accountId: 4, runId: 'r4', status: 'pending', reviewReason: 'why 4' },
    { accountId: 2, runId: 'r2', status: 'pending', reviewReason: 'why 2' },
    { accountId: 1, runId: 'r1', status: 'failed', reviewReason: 'why 1' },
  ]);
  expect(await listPurchasesInReview(database, 2)).toEqual(listed.slice(0, 2));
});

describe('a purchase that is released', () => {
  const release = (database: Database, runId: string) =>
    releasePurchaseFromReview(database, runId, BY_TEST, NOW_MS);
  const key = { accountId: 2, runId: 'r2' };

  test('is due at once, from its first wait, and only that one', async () => {
    const database = await startRuns(4);
    await sql`update runs set wait_count = 7, lease_until = now() + interval '1 hour'`.execute(
      database,
    );
    for (const accountId of [2, 4])
      await sql`update runs set review_reason = 'why' where account_id = ${accountId}`.execute(
        database,
      );
    // Beside it in its account, and with its name in another.
    await sql`
      insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, next_at, created_at, wait_count)
      select account_id, run_id, 'card', 'credits', 'card', 'f', '{}', '{}', '2100-01-01', now(), 7
        from (values (2, 'beside'), (4, 'r2')) as each (account_id, run_id)`.execute(database);
    expect(await release(database, 'r2')).toMatchObject({ ...key, reviewReason: 'why' });
    expect(await listDuePurchases(database, NOW_MS, 10)).toEqual([key]);
    expect(await listDuePurchases(database, NOW_MS - 1, 10)).toEqual([]);
    expect(await claimPurchaseWorkflow(database, key, 1_000)).toMatchObject({ waitCount: 0 });
    expect(await listPurchasesInReview(database, 10)).toMatchObject([{ runId: 'r4' }]);
    expect(await release(database, 'r2')).toBeUndefined();
  });

  test('by two at the same time is released by one of them', async () => {
    const database = await startRuns(2);
    await sendPurchaseToReview(database, key, 'why');
    let second: ReturnType<typeof release> | undefined;
    await database.transaction().execute(async (transaction) => {
      expect(await lockPurchaseInReview(transaction, 'r2')).toMatchObject(key);
      second = release(database, 'r2');
      await untilLockWaiters(database, 1);
      await sql`update runs set review_reason = null where run_id = 'r2'`.execute(transaction);
    });
    expect(await second).toBeUndefined();
    const { rows } = await sql`select from audit_logs`.execute(database);
    expect(rows).toEqual([]);
  });

  test('has its unsuccessful attempts forgiven, and only its own', async () => {
    const database = await startRuns(4);
    for (const accountId of [2, 4]) {
      const owner = (await claimPurchaseWorkflow(
        database,
        { accountId, runId: `r${accountId}` },
        60_000,
      ))!;
      for (const attempt of [1, 2, 3])
        await insertStepIntent(
          database,
          owner,
          { step: 'pay', attempt, idempotencyKey: `k${attempt}`, input: {} },
          60_000,
          NOW_MS + attempt,
        );
      await sql`
        update run_steps set state = case attempt when 1 then 'absent' else 'done' end, output = '{"a": 1}'
         where account_id = ${accountId} and attempt < 3`.execute(database);
      await sendPurchaseToReview(database, owner, 'why');
    }
    await release(database, 'r2');
    const forgiven = async (accountId: number) =>
      (await listPurchaseSteps(database, { accountId, runId: `r${accountId}` })).map(
        ({ state, isForgiven, output }) => [
          state,
          isForgiven,
          (output as { a?: number } | null)?.a,
        ],
      );
    expect(await forgiven(2)).toEqual([
      ['absent', true, 1],
      ['done', false, 1],
      ['intent', false, undefined],
    ]);
    expect((await forgiven(4)).map(([, isForgiven]) => isForgiven)).toEqual([false, false, false]);
  });

  test('keeps an ending that it had, and the audit log of its account names the reason', async () => {
    const database = await startRuns(2);
    await sql`update runs set review_reason = 'void after it was paid'`.execute(database);
    expect(await release(database, 'r1')).toMatchObject({ status: 'failed' });
    const { rows } = await sql`
      select account_id::int as "accountId", object_type as "objectType", object_id as "objectId", run_id as "runId",
             changes::text as changes
        from audit_logs`.execute(database);
    expect(rows).toMatchObject([
      {
        accountId: 1,
        objectType: 'purchase',
        objectId: 'r1',
        runId: 'r1',
        changes: expect.stringContaining('void after it was paid'),
      },
    ]);
    const { rows: runs } =
      await sql`select status, review_reason from runs order by run_id`.execute(database);
    expect(runs).toEqual([
      { status: 'failed', review_reason: null },
      { status: 'pending', review_reason: 'void after it was paid' },
    ]);
  });
});
