import type { Database } from '@sluice/database/connection/connection';
import { listBalances, listLedger } from '@sluice/database/credits/credit-reads';
import {
  debitCredits,
  expireAccountCredits,
  grantCredits,
  refundCredits,
  reverseGrant,
  type NewGrant,
} from '@sluice/database/credits/credits';
import {
  findTransactions,
  listGrants,
  listLiveGrants,
} from '@sluice/database/credits/credit-transactions';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';

const NOW_MS = Date.parse('2026-03-01T00:00:00Z');
let database: Database;
let account: { readonly accountId: number; readonly kind: 'llm' };

beforeEach(async () => {
  ({ database } = await createTestDatabase());
  account = { accountId: await addAccount(), kind: 'llm' };
});

const grant = (given: Partial<NewGrant> & Pick<NewGrant, 'amount' | 'key'>) =>
  database
    .transaction()
    .execute((transaction) =>
      grantCredits(
        transaction,
        account,
        { pool: 'purchased', expiresAtMs: null, ...given },
        NOW_MS,
      ),
    );
const debit = (amount: number, key: string, hasAllowance = true) =>
  database
    .transaction()
    .execute((transaction) =>
      debitCredits(transaction, account, { amount, key, hasAllowance }, NOW_MS),
    );
const refund = (amount: number, debitKey: string, key: string, nowMs = NOW_MS) =>
  database
    .transaction()
    .execute((transaction) =>
      refundCredits(transaction, account, { amount, debitKey, key }, nowMs),
    );
const reverse = (grantKey: string, nowMs = NOW_MS) =>
  database
    .transaction()
    .execute((transaction) => reverseGrant(transaction, account, grantKey, nowMs));
const grants = async () => (await listBalances(database, account.accountId, ['llm'])).get('llm')!;
const available = async () => (await grants()).reduce((sum, each) => sum + each.available, 0);

/** The rows of the grants are the sum of the ledger. */
async function expectLedgerToAgree(): Promise<void> {
  expect(await listCreditDifferences(database)).toEqual([]);
}

test('I8: of 80 debits of 3 against 100 at the same time, 33 are made and 1 credit is left', async () => {
  await grant({ amount: 60, key: 'a' });
  await grant({ amount: 40, key: 'b', pool: 'goodwill' });
  const outcomes = await Promise.all(
    Array.from({ length: 80 }, (_, index) => debit(3, `debit:${index}`)),
  );
  expect(outcomes.filter((each) => each.outcome === 'debited')).toHaveLength(33);
  expect(outcomes.filter((each) => each.outcome === 'insufficient')).toHaveLength(47);
  expect(await available()).toBe(1);
  await expectLedgerToAgree();
});

test('I3: one fact grants once and debits once, however often and at the same time', async () => {
  const granted = await Promise.all(
    Array.from({ length: 60 }, () => grant({ amount: 10, key: 'grant:invoice:in_1' })),
  );
  expect(granted.filter(Boolean)).toHaveLength(1);
  const debited = await Promise.all(Array.from({ length: 20 }, () => debit(4, 'preview:1')));
  expect(debited.filter((each) => each.outcome === 'debited')).toHaveLength(1);
  expect(await available()).toBe(6);
  await expectLedgerToAgree();
});

test('I10: a debit is refunded up to its amount, once a key, to its own grants', async () => {
  await grant({ amount: 5, key: 'a', pool: 'goodwill', expiresAtMs: NOW_MS + 1_000 });
  await grant({ amount: 5, key: 'b' });
  await debit(8, 'preview:1');
  const outcomes = await Promise.all([
    ...Array.from({ length: 5 }, () => refund(4, 'preview:1', 'preview:1:refund:1')),
    refund(5, 'preview:1', 'preview:1:refund:2'),
  ]);
  expect(outcomes.filter((each) => each.outcome === 'refunded')).toHaveLength(1);
  expect(outcomes.filter((each) => each.outcome === 'repeated').length).toBeGreaterThan(3);
  // Credits that have ended meanwhile do not come back to life.
  const left = (await available()) - 2;
  const rest = await refund(8 - left, 'preview:1', 'preview:1:refund:3', NOW_MS + 2_000);
  expect(rest).toEqual({ outcome: 'refunded' });
  expect(await refund(1, 'preview:1', 'preview:1:refund:4')).toEqual({
    outcome: 'too-much',
    left: 0,
  });
  expect((await grants()).map((each) => each.used)).toEqual([0, 0]);
  await expectLedgerToAgree();
});

test('I10: a debit is refunded only up to its amount, even if the database sorts texts by language', async () => {
  // There `;` comes before `:`. It is how most servers are set up.
  // Postgres refuses to alter a column that a trigger reads.
  await sql`drop trigger credit_facts_by_settlers on credit_transactions`.execute(database);
  await sql`
    alter table credit_transactions alter column transaction_key type text collate "en-x-icu"`.execute(
    database,
  );
  await grant({ amount: 8, key: 'a' });
  await debit(8, 'preview:1');
  // A key that ends with its beginning counts too.
  expect(await refund(5, 'preview:1', 'preview:1:refund:')).toEqual({ outcome: 'refunded' });
  expect(await refund(3, 'preview:1', 'preview:1:refund:1')).toEqual({ outcome: 'refunded' });
  expect(await refund(1, 'preview:1', 'preview:1:refund:2')).toEqual({
    outcome: 'too-much',
    left: 0,
  });
  await expectLedgerToAgree();
});

test('I10: a refund counts for its own debit only, and a part of it goes to the grant last taken', async () => {
  await grant({ amount: 6, key: 'a', pool: 'goodwill' });
  await grant({ amount: 3, key: 'b' });
  // All of the same grants, with keys on both sides of each other and one beneath another.
  await debit(2, 'preview:0');
  await debit(1, 'preview:2');
  await debit(5, 'preview:1');
  await debit(1, 'preview:1:refund:x');
  for (const [amount, key] of [
    [2, 'preview:0'],
    [1, 'preview:2'],
  ] as const)
    expect(await refund(amount, key, `${key}:refund:1`)).toEqual({ outcome: 'refunded' });
  expect(await refund(6, 'preview:1', 'preview:1:refund:1')).toEqual({
    outcome: 'too-much',
    left: 5,
  });
  const live = async () => (await grants()).map((each) => each.available);
  expect(await live()).toEqual([3, 0]);
  expect(await refund(1, 'preview:1', 'preview:1:refund:1')).toEqual({ outcome: 'refunded' });
  expect(await live()).toEqual([3, 1]);
  expect(await refund(5, 'preview:1', 'preview:1:refund:2')).toEqual({
    outcome: 'too-much',
    left: 4,
  });
  expect(await refund(4, 'preview:1', 'preview:1:refund:2')).toEqual({ outcome: 'refunded' });
  expect(await live()).toEqual([6, 2]);
  await expectLedgerToAgree();
});

test('I9: expired credits are recorded once, and purchased credits do not expire', async () => {
  await grant({ amount: 5, key: 'month', pool: 'monthly_allowance', expiresAtMs: NOW_MS });
  await grant({ amount: 7, key: 'bought' });
  const expire = () =>
    database
      .transaction()
      .execute((transaction) => expireAccountCredits(transaction, account, NOW_MS));
  const ended = await Promise.all([expire(), expire(), expire()]);
  expect(ended.toSorted((one, other) => one - other)).toEqual([0, 0, 5]);
  expect(await available()).toBe(7);
  // Only the run that found the ended credits is on record.
  const { rows } = await sql<{ reason: string }>`
    select reason from credit_transactions where reason = 'expiry'`.execute(database);
  expect(rows).toHaveLength(1);
  await expectLedgerToAgree();
});

test('I9: credits that end later are another expiry', async () => {
  await grant({ amount: 1, key: 'a', expiresAtMs: NOW_MS });
  await grant({ amount: 2, key: 'b', expiresAtMs: NOW_MS + 1_000 });
  const expire = (nowMs: number) =>
    database
      .transaction()
      .execute((transaction) => expireAccountCredits(transaction, account, nowMs));
  expect([await expire(NOW_MS), await expire(NOW_MS + 999)]).toEqual([1, 0]);
  expect(await expire(NOW_MS + 1_000)).toBe(2);
  const { rows } = await sql<{ key: string; amount: string }>`
    select transaction_key as key, amount from credit_entries
     where to_place = 'expired' order by entry_id`.execute(database);
  expect(rows).toMatchObject([{ amount: '1' }, { amount: '2' }]);
  expect(rows[0]!.key).not.toBe(rows[1]!.key);
  await expectLedgerToAgree();
});

test('an amount of 0 only notes the fact, which then grants no credit', async () => {
  expect(await grant({ amount: 0, key: 'allowance:2026-03:a' })).toBe(false);
  expect(await grant({ amount: 5, key: 'allowance:2026-03:a' })).toBe(false);
  expect(await listBalances(database, account.accountId, ['llm'])).toEqual(new Map([['llm', []]]));
});

test('the ledger shows the available credits of all grants after each move', async () => {
  await grant({ amount: 5, key: 'a', pool: 'goodwill' });
  await grant({ amount: 7, key: 'b' });
  await debit(6, 'preview:1');
  await refund(6, 'preview:1', 'preview:1:refund:1');
  expect(await reverse('b')).toBe(7);
  const entries = await listLedger(database, account.accountId, 'llm', undefined, 10);
  expect(entries.map((entry) => [entry.entryId, entry.amount, entry.availableAfter])).toEqual([
    [7, 7, 5],
    [6, 5, 12],
    [5, 1, 7],
    [4, 1, 6],
    [3, 5, 7],
    [2, 7, 12],
    [1, 5, 5],
  ]);
  await expectLedgerToAgree();
});

test('a change reads the grants with credits left and the named ones, and writes only the changed ones', async () => {
  for (const key of ['a', 'b', 'c']) await grant({ amount: 5, key });
  await debit(10, 'preview:1');
  const { live, named, facts } = await database.transaction().execute(async (transaction) => ({
    live: await listLiveGrants(transaction, account),
    named: await listGrants(transaction, account, [1]),
    facts: await findTransactions(transaction, account, ['a', 'x']),
  }));
  expect(live.map(({ grantId }) => grantId)).toEqual([3]);
  expect(facts).toEqual(new Set(['a']));
  expect(named.map(({ grantId }) => grantId)).toEqual([1, 3]);
  const versions = async () =>
    (
      await sql<{ version: string }>`
        select xmin::text as version from credit_grants order by grant_id`.execute(database)
    ).rows.map(({ version }) => version);
  await grant({ amount: 5, key: 'd' });
  const before = await versions();
  await debit(4, 'preview:2');
  const after = await versions();
  expect(after.map((version, index) => version === before[index])).toEqual([
    true,
    true,
    false,
    true,
  ]);
});

async function addAccount(): Promise<number> {
  const { rows } = await sql<{ accountId: number }>`
    insert into accounts (name) values ('a') returning account_id::int as "accountId"`.execute(
    database,
  );
  return rows[0]!.accountId;
}

test('grants of other kinds and accounts are numbered apart', async () => {
  const others = [
    { accountId: account.accountId, kind: 'builder' },
    { accountId: await addAccount(), kind: 'llm' },
  ] as const;
  const grantAll = async (key: string) => {
    for (const other of others)
      await database
        .transaction()
        .execute((transaction) =>
          grantCredits(
            transaction,
            other,
            { pool: 'purchased', amount: 1, expiresAtMs: null, key },
            NOW_MS,
          ),
        );
  };
  await grantAll('a');
  await grantAll('b');
  await grant({ amount: 1, key: 'a' });
  await grantAll('c');
  for (const { accountId, kind } of others)
    expect(
      (await listBalances(database, accountId, [kind])).get(kind)!.map(({ grantId }) => grantId),
    ).toEqual([1, 2, 3]);
  await expectLedgerToAgree();
});

test('the ledger cannot be rewritten, and a statement by hand cannot make a pool negative', async () => {
  await grant({ amount: 5, key: 'a' });
  await expect(sql`update credit_entries set amount = 9`.execute(database)).rejects.toThrow(
    /insert only/,
  );
  await expect(sql`delete from credit_entries`.execute(database)).rejects.toThrow(/insert only/);
  await expect(
    sql`update credit_grants set available = -1, used = 6`.execute(database),
  ).rejects.toThrow(/check/);
  const entries = await listLedger(database, account.accountId, 'llm', undefined, 10);
  expect(entries).toMatchObject([
    { entryId: 1, reason: 'grant', from: 'issued', to: 'available', amount: 5, availableAfter: 5 },
  ]);
});

test('a grant that is not the sum of its moves is found', async () => {
  await grant({ amount: 5, key: 'a' });
  await expectLedgerToAgree();
  await sql`update credit_grants set available = 2, used = 3`.execute(database);
  expect(await listCreditDifferences(database)).toEqual([
    { ...account, grantId: 1, kept: '2 0 3 0', recomputed: '5 0 0 0' },
  ]);
});

describe('a grant whose price went back', () => {
  test('is taken back alone: others of its kind, and of other kinds and accounts, keep all they have', async () => {
    const own = account;
    const others = [
      { accountId: own.accountId, kind: 'inbox_previews' },
      { accountId: await addAccount(), kind: 'llm' },
    ] as const;
    // Numbered as the ones below are.
    for (const other of others)
      for (const key of ['grant:invoice:in_0', 'grant:invoice:in_1'])
        await database
          .transaction()
          .execute((transaction) =>
            grantCredits(
              transaction,
              other,
              { pool: 'purchased', amount: 9, expiresAtMs: null, key },
              NOW_MS,
            ),
          );
    await grant({ amount: 7, key: 'grant:invoice:in_0', expiresAtMs: NOW_MS + 86_400_000 });
    await grant({ amount: 5, key: 'grant:invoice:in_1' });
    await grant({ amount: 3, key: 'grant:invoice:in_2', pool: 'goodwill' });
    expect(await reverse('grant:invoice:in_1')).toBe(5);
    expect(await grants()).toMatchObject([
      { available: 7, expired: 0, expiresAtMs: NOW_MS + 86_400_000 },
      { available: 0, expired: 5, expiresAtMs: NOW_MS },
      { available: 3, expired: 0, expiresAtMs: null },
    ]);
    for (const { accountId, kind } of others) {
      const balances = await listBalances(database, accountId, [kind]);
      const untouched = { available: 9, expired: 0, expiresAtMs: null };
      expect(balances.get(kind)).toMatchObject([untouched, untouched]);
    }
    // The rest may be spent, and no more than that.
    expect(await debit(11, 'preview:1')).toEqual({ outcome: 'insufficient', available: 10 });
    expect(await debit(10, 'preview:2')).toEqual({ outcome: 'debited' });
    // The next one is another fact.
    expect(await reverse('grant:invoice:in_2')).toBe(0);
    await grant({ amount: 4, key: 'grant:invoice:in_3' });
    expect(await reverse('grant:invoice:in_3')).toBe(4);
    await expectLedgerToAgree();
  });

  test('is taken back once, and a later refund does not restore its credits', async () => {
    await grant({ amount: 5, key: 'a' });
    await debit(2, 'preview:1');
    const taken = await Promise.all([reverse('a'), reverse('a'), reverse('a')]);
    expect(taken.toSorted((one, other) => one - other)).toEqual([0, 0, 3]);
    // The spent part stays spent, and is not refunded.
    expect(await refund(2, 'preview:1', 'preview:1:refund:1', NOW_MS + 1)).toEqual({
      outcome: 'refunded',
    });
    expect(await available()).toBe(0);
    expect(await grants()).toMatchObject([{ granted: 5, available: 0, used: 0, expired: 5 }]);
    await expectLedgerToAgree();
  });

  test('that ended before keeps its end', async () => {
    await grant({ amount: 5, key: 'a', expiresAtMs: NOW_MS - 1_000 });
    expect(await reverse('a')).toBe(5);
    expect(await grants()).toMatchObject([{ expiresAtMs: NOW_MS - 1_000 }]);
    await expectLedgerToAgree();
  });

  test('that does not exist changes no balance and does not block a later grant of that name', async () => {
    await grant({ amount: 5, key: 'a' });
    expect(await reverse('b')).toBe(0);
    expect(await available()).toBe(5);
    // Nor does it keep a later grant of that name from coming.
    expect(await grant({ amount: 4, key: 'b' })).toBe(true);
    expect(await reverse('b')).toBe(4);
  });
});
