/** Refunds of debits. */
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { NOW_MS, startCreditAccount, type CreditWorld } from '../support/credit-account.ts';

let world: CreditWorld;
beforeEach(async () => {
  world = await startCreditAccount();
});

test('I10: a debit is refunded up to its amount, once a key, to its own grants', async () => {
  await world.grant({ amount: 5, key: 'a', pool: 'goodwill', expiresAtMs: NOW_MS + 1_000 });
  await world.grant({ amount: 5, key: 'b' });
  await world.debit(8, 'preview:1');
  const outcomes = await Promise.all([
    ...Array.from({ length: 5 }, () => world.refund(4, 'preview:1', 'preview:1:refund:1')),
    world.refund(5, 'preview:1', 'preview:1:refund:2'),
  ]);
  expect(outcomes.filter((each) => each.outcome === 'refunded')).toHaveLength(1);
  expect(outcomes.filter((each) => each.outcome === 'repeated').length).toBeGreaterThan(3);
  // Credits that have ended meanwhile do not come back to life.
  const left = (await world.available()) - 2;
  const rest = await world.refund(8 - left, 'preview:1', 'preview:1:refund:3', NOW_MS + 2_000);
  expect(rest).toEqual({ outcome: 'refunded' });
  expect(await world.refund(1, 'preview:1', 'preview:1:refund:4')).toEqual({
    outcome: 'too-much',
    left: 0,
  });
  expect((await world.grants()).map((each) => each.used)).toEqual([0, 0]);
  await world.expectLedgerToAgree();
});

test('I10: a debit is refunded only up to its amount, even if the database sorts texts by language', async () => {
  // There `;` comes before `:`. It is how most servers are set up.
  // Postgres refuses to alter a column that a trigger reads.
  await sql`drop trigger credit_facts_by_settlers on credit_transactions`.execute(world.database);
  await sql`
    alter table credit_transactions alter column transaction_key type text collate "en-x-icu"`.execute(
    world.database,
  );
  await world.grant({ amount: 8, key: 'a' });
  await world.debit(8, 'preview:1');
  // A key that ends with its beginning counts too.
  expect(await world.refund(5, 'preview:1', 'preview:1:refund:')).toEqual({ outcome: 'refunded' });
  expect(await world.refund(3, 'preview:1', 'preview:1:refund:1')).toEqual({ outcome: 'refunded' });
  expect(await world.refund(1, 'preview:1', 'preview:1:refund:2')).toEqual({
    outcome: 'too-much',
    left: 0,
  });
  await world.expectLedgerToAgree();
});

test('I10: a refund counts for its own debit only, and a part of it goes to the grant last taken', async () => {
  await world.grant({ amount: 6, key: 'a', pool: 'goodwill' });
  await world.grant({ amount: 3, key: 'b' });
  // All of the same grants, with keys on both sides of each other and one beneath another.
  await world.debit(2, 'preview:0');
  await world.debit(1, 'preview:2');
  await world.debit(5, 'preview:1');
  await world.debit(1, 'preview:1:refund:x');
  for (const [amount, key] of [
    [2, 'preview:0'],
    [1, 'preview:2'],
  ] as const)
    expect(await world.refund(amount, key, `${key}:refund:1`)).toEqual({ outcome: 'refunded' });
  expect(await world.refund(6, 'preview:1', 'preview:1:refund:1')).toEqual({
    outcome: 'too-much',
    left: 5,
  });
  const live = async () => (await world.grants()).map((each) => each.available);
  expect(await live()).toEqual([3, 0]);
  expect(await world.refund(1, 'preview:1', 'preview:1:refund:1')).toEqual({ outcome: 'refunded' });
  expect(await live()).toEqual([3, 1]);
  expect(await world.refund(5, 'preview:1', 'preview:1:refund:2')).toEqual({
    outcome: 'too-much',
    left: 4,
  });
  expect(await world.refund(4, 'preview:1', 'preview:1:refund:2')).toEqual({ outcome: 'refunded' });
  expect(await live()).toEqual([6, 2]);
  await world.expectLedgerToAgree();
});
