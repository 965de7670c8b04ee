import { listBalances } from '@sluice/database/credits/credit-reads';
import { grantCredits } from '@sluice/database/credits/credits';
import { untilLockWaiters } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { renewCredits } from '../../../src/purchases/renew-credits.ts';
import { CATALOGUE, startPurchases } from '../support/purchase-world.ts';

const logger = createLogger('test', 'silent');
const at = (text: string) => ({ now: () => Date.parse(text) });

test('I9: a month brings its allowance once, ends the rest of the last one, and leaves other credits', async () => {
  const world = await startPurchases();
  const { database } = world;
  const accountId = await world.addAccount(null);
  await database.transaction().execute(async (transaction) => {
    for (const pool of ['purchased', 'goodwill'] as const)
      await grantCredits(
        transaction,
        { accountId, kind: 'llm' },
        { pool, amount: 7, expiresAtMs: null, key: pool },
        Date.parse('2026-02-01T00:00:00Z'),
      );
  });
  const renew = (text: string) =>
    renewCredits({ database, catalogue: CATALOGUE, logger, ...at(text) });
  const pools = async () => {
    const grants = (await listBalances(database, accountId, ['llm'])).get('llm')!;
    return grants.map((grant) => [grant.pool, grant.available, grant.expired]);
  };
  await Promise.all([renew('2026-02-10T00:00:00Z'), renew('2026-02-10T00:00:01Z')]);
  const february = [
    ['purchased', 7, 0],
    ['goodwill', 7, 0],
    ['monthly_allowance', 10_000, 0],
  ];
  expect(await pools()).toEqual(february);
  await renew('2026-02-28T23:59:59.999Z');
  expect(await pools()).toEqual(february);
  await renew('2026-03-01T00:00:00.000Z');
  expect(await pools()).toEqual([
    ...february.slice(0, 2),
    ['monthly_allowance', 0, 10_000],
    ['monthly_allowance', 10_000, 0],
  ]);
});

test('an account whose allowance cannot be written does not keep the others from theirs, and has it later', async () => {
  const world = await startPurchases();
  const { database } = world;
  const accountIds = [await world.addAccount(null), await world.addAccount(null)];
  const grantCounts = () =>
    Promise.all(
      accountIds.map(async (accountId) => {
        const balances = await listBalances(database, accountId, ['llm']);
        return balances.get('llm')!.length;
      }),
    );
  // Each of them once, in any order.
  for (const [month, brokenId] of accountIds.entries()) {
    const renew = () =>
      renewCredits({ database, catalogue: CATALOGUE, logger, ...at(`2026-0${month + 2}-10`) });
    await sql`alter table credit_grants add constraint broken check (account_id <> ${sql.lit(brokenId)})
      not valid`.execute(database);
    await renew();
    expect(await grantCounts()).toEqual(
      accountIds.map((accountId) => (accountId === brokenId ? month : month + 1)),
    );
    await sql`alter table credit_grants drop constraint broken`.execute(database);
    await renew();
    expect(await grantCounts()).toEqual([month + 1, month + 1]);
  }
});

test('after an upgrade the difference comes; a paused or Builder plan, or a closed account, brings no credit', async () => {
  const world = await startPurchases();
  const { database } = world;
  const accountId = await world.addAccount(null);
  const put = (plan: string, status = 'active') =>
    sql`update accounts set plan_id = ${plan}, plan_status = ${status}
         where account_id = ${accountId}`.execute(database);
  const renew = () =>
    renewCredits({ database, catalogue: CATALOGUE, logger, ...at('2026-02-10T00:00:00Z') });
  const granted = async () => {
    const grants = (await listBalances(database, accountId, ['llm'])).get('llm')!;
    return grants.map((grant) => grant.granted);
  };
  await put('premium_month', 'paused');
  await renew();
  await put('builder');
  await renew();
  const close = (status: string) =>
    sql`update accounts set status = ${status} where account_id = ${accountId}`.execute(database);
  await put('essentials_month');
  await close('closed');
  await renew();
  expect(await granted()).toEqual([]);
  await close('active');
  await put('essentials_month');
  await renew();
  await put('premium_month');
  await renew();
  await renew();
  await put('essentials_month');
  await renew();
  expect(await granted()).toEqual([1_000, 9_000]);
});

test('two workers before and after an upgrade give together the allowance of the better plan', async () => {
  const world = await startPurchases();
  const { database } = world;
  const accountId = await world.addAccount(null);
  const put = (plan: string) =>
    sql`update accounts set plan_id = ${plan} where account_id = ${accountId}`.execute(database);
  const renew = () =>
    renewCredits({ database, catalogue: CATALOGUE, logger, ...at('2026-02-10T00:00:00Z') });
  await put('essentials_month');
  await sql`insert into credit_accounts (account_id, kind) values (${accountId}, 'llm')`.execute(
    database,
  );
  const renewals: Promise<void>[] = [];
  await database.transaction().execute(async (transaction) => {
    await sql`select from credit_accounts where account_id = ${accountId} for update`.execute(
      transaction,
    );
    renewals.push(renew());
    await untilLockWaiters(database, 1);
    await put('premium_month');
    renewals.push(renew());
    await untilLockWaiters(database, 2);
  });
  await Promise.all(renewals);
  const grants = (await listBalances(database, accountId, ['llm'])).get('llm')!;
  expect(grants.reduce((sum, grant) => sum + grant.granted, 0)).toBe(10_000);
});
