/**
 * What time does to credits: the month's allowance of every paid plan, the end of holds that nobody ended,
 * and the end of grants whose time is over. Each changes only what is its own: a reset never touches what
 * was bought or given.
 *
 * An allowance is a grant that ends with its month (UTC). Its fact is month and plan, so it comes once
 * however often and on however many workers this runs; after an upgrade the difference comes.
 */
import {
  listAccountsWithoutGrant,
  listEndedCredits,
  sumAllowance,
} from '@sluice/database/account-plans';
import type { Database } from '@sluice/database/connection';
import { endHold, listOverdueHolds } from '@sluice/database/credit-holds';
import { expireAccountCredits, grantCredits } from '@sluice/database/credits';
import type { Catalogue, CreditKind } from '@sluice/domain/catalogue';

export interface RenewCreditsDeps {
  readonly database: Database;
  readonly catalogue: Catalogue;
  readonly now: () => number;
}

const KINDS: readonly CreditKind[] = ['llm', 'builder', 'inbox_previews'];
/** Of each plan and kind at a time; what is over waits for the next run. */
const ACCOUNTS_MAX = 1_000;

export async function renewCredits(deps: RenewCreditsDeps): Promise<void> {
  const { database, catalogue } = deps;
  const nowMs = deps.now();
  const today = new Date(nowMs);
  const monthEndsAtMs = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1, 1);
  const month = today.toISOString().slice(0, 7);
  for (const plan of catalogue.plans) {
    for (const kind of KINDS) {
      if (plan.included[kind] === 0 || plan.tier === 'builder') continue;
      const key = `allowance:${month}:${plan.id}`;
      const accounts = await listAccountsWithoutGrant(database, kind, plan.id, key, ACCOUNTS_MAX);
      for (const { accountId } of accounts) {
        await database.transaction().execute(async (transaction) => {
          const account = { accountId, kind };
          const given = await sumAllowance(transaction, account, monthEndsAtMs);
          const amount = Math.max(0, plan.included[kind] - given);
          const grant = {
            pool: 'monthly_allowance',
            amount,
            expiresAtMs: monthEndsAtMs,
            key,
          } as const;
          await grantCredits(transaction, account, grant, nowMs);
        });
      }
    }
  }
  for (const { holdKey, ...account } of await listOverdueHolds(database, nowMs, ACCOUNTS_MAX)) {
    await database
      .transaction()
      .execute((transaction) => endHold(transaction, account, holdKey, 0, nowMs));
  }
  for (const account of await listEndedCredits(database, nowMs, ACCOUNTS_MAX)) {
    await database
      .transaction()
      .execute((transaction) => expireAccountCredits(transaction, account, nowMs));
  }
}
