/** The allowance of a month: granted once, raised by a greater plan, and taken back for a smaller one. */
import type { Database, Transaction } from '@sluice/database/connection/connection';
import { listBalances } from '@sluice/database/credits/credit-reads';
import {
  capMonthAllowance,
  debitCredits,
  giveAllowance,
  grantCredits,
} from '@sluice/database/credits/credits';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { sql } from 'kysely';
import { beforeEach, expect, onTestFinished, test } from 'vitest';

const NOW_MS = Date.parse('2026-03-10T00:00:00Z');
const MONTH_END_MS = Date.parse('2026-04-01T00:00:00Z');
const MONTH_BEFORE_END_MS = Date.parse('2026-03-01T00:00:00Z');
const MONTH_AFTER_END_MS = Date.parse('2026-05-01T00:00:00Z');
let database: Database;
let account: { readonly accountId: number; readonly kind: 'llm' };

beforeEach(async () => {
  ({ database } = await createTestDatabase());
  const { rows } = await sql<{ accountId: number }>`
    insert into accounts (name) values ('a') returning account_id::int as "accountId"`.execute(
    database,
  );
  account = { accountId: rows[0]!.accountId, kind: 'llm' };
  // The rows of the grants are the sum of the ledger.
  onTestFinished(async () => {
    const differences = await listCreditDifferences(database);
    if (differences.length > 0) throw new Error(JSON.stringify(differences));
  });
});

const within = <Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result> =>
  database.transaction().execute(work);
const give = (included: number, key: string, endsAtMs = MONTH_END_MS, runId?: string) =>
  within((transaction) =>
    giveAllowance(transaction, account, { included, endsAtMs, key }, NOW_MS, runId),
  );
const cap = (included: number, runId: string) =>
  within((transaction) =>
    capMonthAllowance(transaction, account, { included, endsAtMs: MONTH_END_MS }, runId, NOW_MS),
  );
const spend = (amount: number) =>
  within((transaction) =>
    debitCredits(
      transaction,
      account,
      { amount, key: `debit:${amount}`, hasAllowance: true },
      NOW_MS,
    ),
  );
const available = async (): Promise<number[]> => {
  const balances = await listBalances(database, account.accountId, ['llm']);
  return (balances.get('llm') ?? []).map((each) => each.available).toSorted((a, b) => a - b);
};

test('a month is granted once, also by several at the same time, and a greater plan adds the difference', async () => {
  await Promise.all(Array.from({ length: 10 }, () => give(10, 'plan:a')));
  expect(await available()).toEqual([10]);
  await Promise.all([give(25, 'plan:b'), give(40, 'plan:c')]);
  const sum = (await available()).reduce((all, each) => all + each, 0);
  expect(sum).toBe(40);
  await give(30, 'plan:d');
  expect((await available()).reduce((all, each) => all + each, 0)).toBe(40);
});

test('the allowance of the month before or after and other pools do not lessen it', async () => {
  await within((transaction) =>
    grantCredits(
      transaction,
      account,
      { pool: 'goodwill', amount: 7, expiresAtMs: MONTH_END_MS, key: 'goodwill' },
      NOW_MS,
    ),
  );
  await give(10, 'before', MONTH_BEFORE_END_MS);
  // By a process whose clock is ahead.
  await give(10, 'after', MONTH_AFTER_END_MS);
  await give(10, 'month');
  expect(await available()).toEqual([7, 10, 10, 10]);
});

test('the allowance of another account or kind neither lessens it nor is taken back with it', async () => {
  const { rows } = await sql<{ accountId: number }>`
    insert into accounts (name) values ('b') returning account_id::int as "accountId"`.execute(
    database,
  );
  const own = account;
  const others = [
    { ...own, accountId: rows[0]!.accountId },
    { ...own, kind: 'builder' },
  ] as const;
  // Their first grants are allowances, and the account's own first grant is bought.
  for (const other of others)
    await within((transaction) =>
      giveAllowance(
        transaction,
        other,
        { included: 10, endsAtMs: MONTH_END_MS, key: 'month' },
        NOW_MS,
      ),
    );
  await within((transaction) =>
    grantCredits(
      transaction,
      own,
      { pool: 'purchased', amount: 5, expiresAtMs: null, key: 'bought' },
      NOW_MS,
    ),
  );
  await give(30, 'month');
  expect(await available()).toEqual([5, 30]);
  await cap(20, 'run-1');
  expect(await available()).toEqual([5, 20]);
  for (const { accountId, kind } of others) {
    const balances = await listBalances(database, accountId, [kind]);
    expect(balances.get(kind)).toMatchObject([{ available: 10, expired: 0 }]);
  }
});

// Spent credits stay spent, so more of the others has to go.
test('a smaller plan takes back all beyond it, and spent credits count', async () => {
  await give(10, 'plan:a');
  await spend(10);
  await give(100, 'plan:b');
  expect(await available()).toEqual([0, 90]);
  await cap(50, 'run-1');
  expect(await available()).toEqual([0, 40]);
});

test('a change of plan takes back once, and no credits of another month or pool', async () => {
  await give(10, 'before', MONTH_BEFORE_END_MS);
  await give(10, 'after', MONTH_AFTER_END_MS);
  for (const other of [
    { pool: 'purchased', amount: 5, expiresAtMs: null, key: 'bought' },
    // It ends with the month, as the allowance does.
    { pool: 'goodwill', amount: 7, expiresAtMs: MONTH_END_MS, key: 'goodwill' },
  ] as const)
    await within((transaction) => grantCredits(transaction, account, other, NOW_MS));
  await give(30, 'month');
  await cap(20, 'run-1');
  expect(await available()).toEqual([5, 7, 10, 10, 20]);
  await cap(8, 'run-1');
  expect(await available()).toEqual([5, 7, 10, 10, 20]);
  await cap(8, 'run-2');
  expect(await available()).toEqual([5, 7, 8, 10, 10]);
});

test('a change to a plan with the same allowance keeps the ledger as it is', async () => {
  await give(30, 'month');
  await cap(30, 'run-1');
  const { rows } = await sql<{ key: string }>`
    select transaction_key as key from credit_transactions`.execute(database);
  expect(rows).toEqual([{ key: 'month' }]);
});

test('a plan that is bought again brings back the part that was taken back', async () => {
  await give(30, 'plan:a');
  await cap(10, 'run-1');
  await give(30, 'plan:a');
  expect(await available()).toEqual([10]);
  await give(30, 'plan:a', MONTH_END_MS, 'run-2');
  await give(30, 'plan:a', MONTH_END_MS, 'run-2');
  expect(await available()).toEqual([10, 20]);
});

test('a plan’s first purchase in the month uses up its allowance, so that a renewal brings no more of it', async () => {
  await give(30, 'plan:a', MONTH_END_MS, 'run-1');
  await cap(10, 'run-2');
  await give(30, 'plan:a');
  expect(await available()).toEqual([10]);
});

test('a debit grants the month’s allowance first, once a month, and spends it before bought credits', async () => {
  await within((transaction) =>
    grantCredits(
      transaction,
      account,
      { pool: 'purchased', amount: 5, expiresAtMs: null, key: 'bought' },
      NOW_MS,
    ),
  );
  const allowance = { included: 10, endsAtMs: MONTH_END_MS, key: 'month' };
  const debit = (key: string) =>
    within((transaction) =>
      debitCredits(transaction, account, { amount: 4, key, hasAllowance: true, allowance }, NOW_MS),
    );
  expect(await debit('debit:1')).toEqual({ outcome: 'debited' });
  expect(await available()).toEqual([5, 6]);
  // The sum of the month is not read again.
  const sent = await statementsSentBy(async () =>
    expect(await debit('debit:2')).toEqual({ outcome: 'debited' }),
  );
  expect(sent.filter(({ text }) => text.includes('sum('))).toEqual([]);
  expect(await debit('debit:2')).toEqual({ outcome: 'repeated' });
  expect(await available()).toEqual([2, 5]);
});
