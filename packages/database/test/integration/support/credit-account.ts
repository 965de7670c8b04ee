/** Credits of a new account, in a database of its own. */
import { listBalances } from '@sluice/database/credits/credit-reads';
import {
  debitCredits,
  grantCredits,
  refundCredits,
  reverseGrant,
  type NewGrant,
} from '@sluice/database/credits/credits';
import type { CreditAccount } from '@sluice/database/credits/credit-transactions';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { sql } from 'kysely';
import { expect } from 'vitest';

/** The present of every change that names no other time. */
export const NOW_MS = Date.parse('2026-03-01T00:00:00Z');

export async function startCreditAccount() {
  const { database } = await createTestDatabase();
  const addAccount = async (): Promise<number> => {
    const { rows } = await sql<{ accountId: number }>`
      insert into accounts (name) values ('a') returning account_id::int as "accountId"`.execute(
      database,
    );
    return rows[0]!.accountId;
  };
  const account = { accountId: await addAccount(), kind: 'llm' } as const;
  const world = {
    database,
    account,
    addAccount,

    /** Bought and without an end, unless given otherwise. */
    grant: (
      given: Partial<NewGrant> & Pick<NewGrant, 'amount' | 'key'>,
      to: CreditAccount = account,
    ) =>
      database
        .transaction()
        .execute((transaction) =>
          grantCredits(transaction, to, { pool: 'purchased', expiresAtMs: null, ...given }, NOW_MS),
        ),
    debit: (amount: number, key: string, hasAllowance = true) =>
      database
        .transaction()
        .execute((transaction) =>
          debitCredits(transaction, account, { amount, key, hasAllowance }, NOW_MS),
        ),
    refund: (amount: number, debitKey: string, key: string, nowMs = NOW_MS) =>
      database
        .transaction()
        .execute((transaction) =>
          refundCredits(transaction, account, { amount, debitKey, key }, nowMs),
        ),
    reverse: (grantKey: string, nowMs = NOW_MS) =>
      database
        .transaction()
        .execute((transaction) => reverseGrant(transaction, account, grantKey, nowMs)),

    grants: async ({ accountId, kind }: CreditAccount = account) =>
      (await listBalances(database, accountId, [kind])).get(kind)!,
    available: async () => (await world.grants()).reduce((sum, each) => sum + each.available, 0),
    /** The rows of the grants are the sum of the ledger. */
    expectLedgerToAgree: async () => expect(await listCreditDifferences(database)).toEqual([]),
  };
  return world;
}

export type CreditWorld = Awaited<ReturnType<typeof startCreditAccount>>;
