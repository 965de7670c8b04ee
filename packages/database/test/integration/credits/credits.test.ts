import { listBalances, listLedger } from '@sluice/database/credits/credit-reads';
import { expireAccountCredits } from '@sluice/database/credits/credits';
import {
  findTransactions,
  listGrants,
  listLiveGrants,
} from '@sluice/database/credits/credit-transactions';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { NOW_MS, startCreditAccount, type CreditWorld } from '../support/credit-account.ts';

let world: CreditWorld;
beforeEach(async () => {
  world = await startCreditAccount();
});

test('I8: of 80 debits of 3 against 100 at the same time, 33 are made and 1 credit is left', async () => {
  await world.grant({ amount: 60, key: 'a' });
  await world.grant({ amount: 40, key: 'b', pool: 'goodwill' });
  const outcomes = await Promise.all(
    Array.from({ length: 80 }, (_, index) => world.debit(3, `debit:${index}`)),
  );
  expect(outcomes.filter((each) => each.outcome === 'debited')).toHaveLength(33);
  expect(outcomes.filter((each) => each.outcome === 'insufficient')).toHaveLength(47);
  expect(await world.available()).toBe(1);
  await world.expectLedgerToAgree();
});

test('I3: one fact grants once and debits once, however often and at the same time', async () => {
  const granted = await Promise.all(
    Array.from({ length: 60 }, () => world.grant({ amount: 10, key: 'grant:invoice:in_1' })),
  );
  expect(granted.filter(Boolean)).toHaveLength(1);
  const debited = await Promise.all(Array.from({ length: 20 }, () => world.debit(4, 'preview:1')));
  expect(debited.filter((each) => each.outcome === 'debited')).toHaveLength(1);
  expect(await world.available()).toBe(6);
  await world.expectLedgerToAgree();
});

test('I9: expired credits are recorded once, and purchased credits do not expire', async () => {
  await world.grant({ amount: 5, key: 'month', pool: 'monthly_allowance', expiresAtMs: NOW_MS });
  await world.grant({ amount: 7, key: 'bought' });
  const expire = () =>
    world.database
      .transaction()
      .execute((transaction) => expireAccountCredits(transaction, world.account, NOW_MS));
  const ended = await Promise.all([expire(), expire(), expire()]);
  expect(ended.toSorted((one, other) => one - other)).toEqual([0, 0, 5]);
  expect(await world.available()).toBe(7);
  // Only the run that found the ended credits is on record.
  const { rows } = await sql<{ reason: string }>`
    select reason from credit_transactions where reason = 'expiry'`.execute(world.database);
  expect(rows).toHaveLength(1);
  await world.expectLedgerToAgree();
});

test('I9: credits that end later are another expiry', async () => {
  await world.grant({ amount: 1, key: 'a', expiresAtMs: NOW_MS });
  await world.grant({ amount: 2, key: 'b', expiresAtMs: NOW_MS + 1_000 });
  const expire = (nowMs: number) =>
    world.database
      .transaction()
      .execute((transaction) => expireAccountCredits(transaction, world.account, nowMs));
  expect([await expire(NOW_MS), await expire(NOW_MS + 999)]).toEqual([1, 0]);
  expect(await expire(NOW_MS + 1_000)).toBe(2);
  const { rows } = await sql<{ key: string; amount: string }>`
    select transaction_key as key, amount from credit_entries
     where to_place = 'expired' order by entry_id`.execute(world.database);
  expect(rows).toMatchObject([{ amount: '1' }, { amount: '2' }]);
  expect(rows[0]!.key).not.toBe(rows[1]!.key);
  await world.expectLedgerToAgree();
});

test('an amount of 0 only notes the fact, which then grants no credit', async () => {
  expect(await world.grant({ amount: 0, key: 'allowance:2026-03:a' })).toBe(false);
  expect(await world.grant({ amount: 5, key: 'allowance:2026-03:a' })).toBe(false);
  expect(await listBalances(world.database, world.account.accountId, ['llm'])).toEqual(
    new Map([['llm', []]]),
  );
});

test('the ledger shows the available credits of all grants after each move', async () => {
  await world.grant({ amount: 5, key: 'a', pool: 'goodwill' });
  await world.grant({ amount: 7, key: 'b' });
  await world.debit(6, 'preview:1');
  await world.refund(6, 'preview:1', 'preview:1:refund:1');
  expect(await world.reverse('b')).toBe(7);
  const entries = await listLedger(world.database, world.account.accountId, 'llm', undefined, 10);
  expect(entries.map((entry) => [entry.entryId, entry.amount, entry.availableAfter])).toEqual([
    [7, 7, 5],
    [6, 5, 12],
    [5, 1, 7],
    [4, 1, 6],
    [3, 5, 7],
    [2, 7, 12],
    [1, 5, 5],
  ]);
  await world.expectLedgerToAgree();
});

test('a change reads the grants with credits left and the named ones, and writes only the changed ones', async () => {
  for (const key of ['a', 'b', 'c']) await world.grant({ amount: 5, key });
  await world.debit(10, 'preview:1');
  const { live, named, facts } = await world.database
    .transaction()
    .execute(async (transaction) => ({
      live: await listLiveGrants(transaction, world.account),
      named: await listGrants(transaction, world.account, [1]),
      facts: await findTransactions(transaction, world.account, ['a', 'x']),
    }));
  expect(live.map(({ grantId }) => grantId)).toEqual([3]);
  expect(facts).toEqual(new Set(['a']));
  expect(named.map(({ grantId }) => grantId)).toEqual([1, 3]);
  const versions = async () =>
    (
      await sql<{ version: string }>`
        select xmin::text as version from credit_grants order by grant_id`.execute(world.database)
    ).rows.map(({ version }) => version);
  await world.grant({ amount: 5, key: 'd' });
  const before = await versions();
  await world.debit(4, 'preview:2');
  const after = await versions();
  expect(after.map((version, index) => version === before[index])).toEqual([
    true,
    true,
    false,
    true,
  ]);
});

test('grants of other kinds and accounts are numbered apart', async () => {
  const others = [
    { accountId: world.account.accountId, kind: 'builder' },
    { accountId: await world.addAccount(), kind: 'llm' },
  ] as const;
  const grantAll = async (key: string) => {
    for (const other of others) await world.grant({ amount: 1, key }, other);
  };
  await grantAll('a');
  await grantAll('b');
  await world.grant({ amount: 1, key: 'a' });
  await grantAll('c');
  for (const other of others)
    expect((await world.grants(other)).map(({ grantId }) => grantId)).toEqual([1, 2, 3]);
  await world.expectLedgerToAgree();
});

test('the ledger cannot be rewritten, and a statement by hand cannot make a pool negative', async () => {
  await world.grant({ amount: 5, key: 'a' });
  await expect(sql`update credit_entries set amount = 9`.execute(world.database)).rejects.toThrow(
    /insert only/,
  );
  await expect(sql`delete from credit_entries`.execute(world.database)).rejects.toThrow(
    /insert only/,
  );
  await expect(
    sql`update credit_grants set available = -1, used = 6`.execute(world.database),
  ).rejects.toThrow(/check/);
  const entries = await listLedger(world.database, world.account.accountId, 'llm', undefined, 10);
  expect(entries).toMatchObject([
    { entryId: 1, reason: 'grant', from: 'issued', to: 'available', amount: 5, availableAfter: 5 },
  ]);
});

test('a grant that is not the sum of its moves is found', async () => {
  await world.grant({ amount: 5, key: 'a' });
  await world.expectLedgerToAgree();
  await sql`update credit_grants set available = 2, used = 3`.execute(world.database);
  expect(await listCreditDifferences(world.database)).toEqual([
    { ...world.account, grantId: 1, kept: '2 0 3 0', recomputed: '5 0 0 0' },
  ]);
});
