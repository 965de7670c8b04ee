/** Grants that are taken back, as their price has gone back. */
import { beforeEach, describe, expect, test } from 'vitest';
import { NOW_MS, startCreditAccount, type CreditWorld } from '../support/credit-account.ts';

let world: CreditWorld;
beforeEach(async () => {
  world = await startCreditAccount();
});

describe('a grant whose price went back', () => {
  test('is taken back alone: others of its kind, and of other kinds and accounts, keep all they have', async () => {
    const own = world.account;
    const others = [
      { accountId: own.accountId, kind: 'inbox_previews' },
      { accountId: await world.addAccount(), kind: 'llm' },
    ] as const;
    // Numbered as the ones below are.
    for (const other of others)
      for (const key of ['grant:invoice:in_0', 'grant:invoice:in_1'])
        await world.grant({ amount: 9, key }, other);
    await world.grant({ amount: 7, key: 'grant:invoice:in_0', expiresAtMs: NOW_MS + 86_400_000 });
    await world.grant({ amount: 5, key: 'grant:invoice:in_1' });
    await world.grant({ amount: 3, key: 'grant:invoice:in_2', pool: 'goodwill' });
    expect(await world.reverse('grant:invoice:in_1')).toBe(5);
    expect(await world.grants()).toMatchObject([
      { available: 7, expired: 0, expiresAtMs: NOW_MS + 86_400_000 },
      { available: 0, expired: 5, expiresAtMs: NOW_MS },
      { available: 3, expired: 0, expiresAtMs: null },
    ]);
    const untouched = { available: 9, expired: 0, expiresAtMs: null };
    for (const other of others)
      expect(await world.grants(other)).toMatchObject([untouched, untouched]);
    // The rest may be spent, and no more than that.
    expect(await world.debit(11, 'preview:1')).toEqual({ outcome: 'insufficient', available: 10 });
    expect(await world.debit(10, 'preview:2')).toEqual({ outcome: 'debited' });
    // The next one is another fact.
    expect(await world.reverse('grant:invoice:in_2')).toBe(0);
    await world.grant({ amount: 4, key: 'grant:invoice:in_3' });
    expect(await world.reverse('grant:invoice:in_3')).toBe(4);
    await world.expectLedgerToAgree();
  });

  test('is taken back once, and a later refund does not restore its credits', async () => {
    await world.grant({ amount: 5, key: 'a' });
    await world.debit(2, 'preview:1');
    const taken = await Promise.all([world.reverse('a'), world.reverse('a'), world.reverse('a')]);
    expect(taken.toSorted((one, other) => one - other)).toEqual([0, 0, 3]);
    // The spent part stays spent, and is not refunded.
    expect(await world.refund(2, 'preview:1', 'preview:1:refund:1', NOW_MS + 1)).toEqual({
      outcome: 'refunded',
    });
    expect(await world.available()).toBe(0);
    expect(await world.grants()).toMatchObject([{ granted: 5, available: 0, used: 0, expired: 5 }]);
    await world.expectLedgerToAgree();
  });

  test('that ended before keeps its end', async () => {
    await world.grant({ amount: 5, key: 'a', expiresAtMs: NOW_MS - 1_000 });
    expect(await world.reverse('a')).toBe(5);
    expect(await world.grants()).toMatchObject([{ expiresAtMs: NOW_MS - 1_000 }]);
    await world.expectLedgerToAgree();
  });

  test('that does not exist changes no balance and does not block a later grant of that name', async () => {
    await world.grant({ amount: 5, key: 'a' });
    expect(await world.reverse('b')).toBe(0);
    expect(await world.available()).toBe(5);
    // Nor does it keep a later grant of that name from coming.
    expect(await world.grant({ amount: 4, key: 'b' })).toBe(true);
    expect(await world.reverse('b')).toBe(4);
  });
});
