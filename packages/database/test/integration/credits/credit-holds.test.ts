import type { Database } from '@sluice/database/connection/connection';
import { endHold, holdCredits, listOverdueHolds } from '@sluice/database/credits/credit-holds';
import { listBalances } from '@sluice/database/credits/credit-reads';
import { debitCredits, grantCredits } from '@sluice/database/credits/credits';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { viewBalance } from '@sluice/domain/billing/credit-ledger';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';

const NOW_MS = Date.parse('2026-03-01T00:00:00Z');
let database: Database;
let account: { readonly accountId: number; readonly kind: 'inbox_previews' };

beforeEach(async () => {
  ({ database } = await createTestDatabase());
  const { rows } = await sql<{ accountId: number }>`
    insert into accounts (name) values ('a') returning account_id::int as "accountId"`.execute(
    database,
  );
  account = { accountId: rows[0]!.accountId, kind: 'inbox_previews' };
});

const grant = (amount: number, key: string, expiresAtMs: number | null = null) =>
  database
    .transaction()
    .execute((transaction) =>
      grantCredits(transaction, account, { pool: 'purchased', amount, expiresAtMs, key }, NOW_MS),
    );
const hold = (amount: number, key: string, expiresAtMs = NOW_MS + 60_000) =>
  database
    .transaction()
    .execute((transaction) =>
      holdCredits(transaction, account, { amount, key, hasAllowance: true, expiresAtMs }, NOW_MS),
    );
const end = (key: string, captured: number, nowMs = NOW_MS) =>
  database
    .transaction()
    .execute((transaction) => endHold(transaction, account, key, captured, nowMs));
const balance = async (nowMs = NOW_MS) => {
  const balances = await listBalances(database, account.accountId, ['inbox_previews']);
  const view = viewBalance(balances.get('inbox_previews')!, nowMs, true);
  return [view.totalAvailable, view.reserved];
};

test('held credits cannot be spent by others, and the unused part goes back', async () => {
  await grant(10, 'a');
  expect(await hold(7, 'job:1')).toEqual({ outcome: 'held' });
  expect(await balance()).toEqual([3, 7]);
  expect(await hold(4, 'job:2')).toEqual({ outcome: 'insufficient', available: 3 });
  const debited = await database
    .transaction()
    .execute((transaction) =>
      debitCredits(transaction, account, { amount: 4, key: 'd', hasAllowance: true }, NOW_MS),
    );
  expect(debited).toMatchObject({ outcome: 'insufficient' });
  expect(await end('job:1', 8)).toEqual({ outcome: 'too-much', held: 7 });
  expect(await end('job:1', 2)).toEqual({ outcome: 'ended' });
  expect(await balance()).toEqual([8, 0]);
  expect(await end('job:9', 1)).toEqual({ outcome: 'unknown' });
  expect(await listCreditDifferences(database)).toEqual([]);
});

test('I8: of 80 holds of 3 against 100 at the same time 33 are made, and each ends once', async () => {
  await grant(60, 'a');
  await grant(40, 'b');
  const made = await Promise.all(Array.from({ length: 80 }, (_, n) => hold(3, `job:${n}`)));
  expect(made.filter(({ outcome }) => outcome === 'held')).toHaveLength(33);
  expect(await balance()).toEqual([1, 99]);
  const keys = made.flatMap(({ outcome }, n) => (outcome === 'held' ? [`job:${n}`] : []));
  // Each is ended by three at once, who do not agree.
  const ended = await Promise.all(keys.flatMap((key) => [0, 1, 3].map((part) => end(key, part))));
  expect(ended.filter(({ outcome }) => outcome === 'ended')).toHaveLength(33);
  expect(ended.filter(({ outcome }) => outcome === 'repeated')).toHaveLength(66);
  const [available, reserved] = await balance();
  expect(reserved).toBe(0);
  expect(available).toBeGreaterThanOrEqual(1);
  expect(await listCreditDifferences(database)).toEqual([]);
});

test('one fact is held for once, and the same again after its end is no new hold', async () => {
  await grant(10, 'a');
  const made = await Promise.all(Array.from({ length: 10 }, () => hold(4, 'job:1')));
  expect(made.filter(({ outcome }) => outcome === 'held')).toHaveLength(1);
  await end('job:1', 4);
  expect(await hold(4, 'job:1')).toEqual({ outcome: 'repeated' });
  expect(await end('job:1', 0)).toEqual({ outcome: 'repeated', captured: 4 });
  expect(await balance()).toEqual([6, 0]);
});

test('each ending is a fact of its own in the ledger, as are the hold and its grant', async () => {
  await grant(10, 'a');
  for (const key of ['job:1', 'job:2']) {
    await hold(3, key);
    await end(key, 2);
  }
  const { rows } = await sql<{ key: string; reason: string }>`
    select transaction_key as key, reason from credit_transactions order by 1`.execute(database);
  expect(rows.map(({ key, reason }) => `${key} ${reason}`)).toEqual([
    'a grant',
    'job:1 hold',
    'job:1:end capture',
    'job:2 hold',
    'job:2:end capture',
  ]);
});

test('a hold without an end is found when its time is over, and expired credits do not come back', async () => {
  await grant(5, 'ends', NOW_MS + 30_000);
  await grant(5, 'stays');
  await hold(8, 'job:1');
  expect(await listOverdueHolds(database, NOW_MS + 59_999, 10)).toEqual([]);
  expect(await listOverdueHolds(database, NOW_MS + 60_000, 10)).toEqual([
    { ...account, holdKey: 'job:1' },
  ]);
  await end('job:1', 0, NOW_MS + 60_000);
  expect(await balance(NOW_MS + 60_000)).toEqual([5, 0]);
  expect(await listOverdueHolds(database, NOW_MS + 60_000, 10)).toEqual([]);
  expect(await listCreditDifferences(database)).toEqual([]);
});

test('a hold ends alone: of its account, and of another kind or account with its key, the holds go on', async () => {
  const { rows } = await sql<{ accountId: number }>`
    insert into accounts (name) values ('b') returning account_id::int as "accountId"`.execute(
    database,
  );
  const own = account;
  const holds = [
    { of: own, key: 'job:1', amount: 1 },
    { of: own, key: 'job:2', amount: 2 },
    { of: { ...own, kind: 'llm' } as const, key: 'job:1', amount: 3 },
    { of: { accountId: rows[0]!.accountId, kind: own.kind }, key: 'job:1', amount: 4 },
  ];
  const within = database.transaction();
  for (const [index, { of, key, amount }] of holds.entries())
    await within.execute(async (transaction) => {
      const given = { pool: 'purchased', amount: 10, expiresAtMs: null, key: `g${index}` } as const;
      await grantCredits(transaction, of, given, NOW_MS);
      const asked = { amount, key, hasAllowance: true, expiresAtMs: NOW_MS + index };
      expect(await holdCredits(transaction, of, asked, NOW_MS)).toEqual({ outcome: 'held' });
    });
  // The first to end first, and no more than were asked for.
  expect(await listOverdueHolds(database, NOW_MS + 9, 2)).toEqual([
    { ...own, holdKey: 'job:1' },
    { ...own, holdKey: 'job:2' },
  ]);
  for (const { of, key, amount } of holds) {
    const capture = (captured: number) =>
      within.execute((transaction) => endHold(transaction, of, key, captured, NOW_MS));
    expect(await capture(amount + 1)).toEqual({ outcome: 'too-much', held: amount });
    expect(await capture(amount)).toEqual({ outcome: 'ended' });
    expect(await capture(0)).toEqual({ outcome: 'repeated', captured: amount });
  }
  expect(await listCreditDifferences(database)).toEqual([]);
});
