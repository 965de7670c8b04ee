/**
 * The month's allowance of inbox previews: there from its first moment, brought by the first call that records a run.
 */
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { giveAllowance } from '@sluice/database/credits/credits';
import { untilLockWaiters } from '@sluice/database/testing/testing';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { allowanceOf } from '@sluice/domain/billing/allowance';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startPreviewRuns } from '../support/preview-run-world.ts';

const world = startPreviewRuns();
const { record, grant, grants } = world;

const put = (planId: string) =>
  sql`update accounts set plan_id = ${planId} where account_id = ${world.account.accountId}`.execute(
    world.api.database,
  );
const APRIL_MS = Date.parse('2026-04-01T00:00:00.000Z');

test('a month’s allowance is available from its first moment and is used before grants and purchases', async () => {
  await put('premium_month');
  await grant({ amount: 10, key: 'a' });
  await grant({ amount: 10, key: 'b', pool: 'goodwill' });
  const march = { pool: 'monthly_allowance', expiresAtMs: APRIL_MS } as const;
  await grant({ amount: 5, key: 'allowance:2026-03:premium_month', ...march });
  world.api.clock.nowMs = APRIL_MS - 1;
  await record();
  world.api.clock.nowMs = APRIL_MS;
  await record({ preview_job_id: 'job-2' });
  // The same call again, and one of a job before: no further grant.
  await record({ preview_job_id: 'job-2' });
  expect((await grants()).toSorted()).toEqual([
    'goodwill: 10/0',
    'monthly_allowance: 197/3',
    'monthly_allowance: 2/3',
    'purchased: 10/0',
  ]);
  expect(await listCreditDifferences(world.api.database)).toEqual([]);
});

test('the allowance covers usage without purchased credits, and usage beyond it is refused', async () => {
  await put('premium_month');
  expect((await record({ quantity: 200 })).statusCode).toBe(200);
  const refused = await record({ preview_job_id: 'job-2', quantity: 1 });
  expectProblem(refused, 409, 'insufficient_credits');
  expect(await grants()).toEqual(['monthly_allowance: 0/200']);
});

test('a plan that a bank still has to pay brings no allowance', async () => {
  await put('premium_month');
  const { api, account } = world;
  const wait = (runId: string | null) =>
    sql`
      update accounts set plan_unpaid_run_id = ${runId}
       where account_id = ${account.accountId}`.execute(api.database);
  await wait('run_1');
  expectProblem(await record(), 409, 'insufficient_credits');
  expect(await grants()).toEqual([]);
  await wait(null);
  expect((await record()).statusCode).toBe(200);
});

test('an allowance comes once to debits at the same time as each other and as the workers that renew it', async () => {
  await put('premium_month');
  const { api, account } = world;
  const plan = readCatalogue(undefined).plans.find((each) => each.id === 'premium_month')!;
  const allowance = allowanceOf(plan, 'inbox_previews', api.clock.nowMs)!;
  const renew = () =>
    api.database
      .transaction()
      .execute((transaction) =>
        giveAllowance(
          transaction,
          { accountId: account.accountId, kind: 'inbox_previews' },
          allowance,
          api.clock.nowMs,
        ),
      );
  await sql`
    insert into credit_accounts (account_id, kind)
    values (${account.accountId}, 'inbox_previews')`.execute(api.database);
  const debits: ReturnType<typeof record>[] = [];
  const renewals: Promise<void>[] = [];
  // A debit is the first in the queue, so that it is not the workers who bring the allowance.
  await api.database.transaction().execute(async (transaction) => {
    await sql`
      select from credit_accounts where account_id = ${account.accountId} for update`.execute(
      transaction,
    );
    debits.push(...['job-1', 'job-2', 'job-3'].map((job) => record({ preview_job_id: job })));
    await untilLockWaiters(api.database, 3);
    renewals.push(renew(), renew());
    await untilLockWaiters(api.database, 5);
  });
  const answers = await Promise.all(debits);
  await Promise.all(renewals);
  expect(answers.map((answer) => answer.statusCode)).toEqual([200, 200, 200]);
  expect(await grants()).toEqual(['monthly_allowance: 191/9']);
  expect(await listCreditDifferences(api.database)).toEqual([]);
});

test('an allowance of a plan that was changed to brings the difference to the next debit', async () => {
  await put('essentials_month');
  await record({ quantity: 20 });
  await put('premium_month');
  await grant({ amount: 10, key: 'a' });
  await record({ preview_job_id: 'job-2' });
  expect(await grants()).toEqual([
    'monthly_allowance: 0/20',
    'purchased: 10/0',
    'monthly_allowance: 177/3',
  ]);
});
