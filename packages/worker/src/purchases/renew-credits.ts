/**
 * Changes of credits by the clock: the month's allowance of every paid plan, the end of open holds, and the end of
 * expired grants. Each changes only its own kind: a reset never touches credits that were bought or given.
 *
 * An allowance comes once, for any number of runs and workers (`domain/src/billing/allowance.ts`). It is given earlier
 * if it is needed earlier: by the first debit of the month, and with a plan that is bought. The API gives no more than
 * the plans include that are published here (`database/src/billing/catalogue-plans.ts`).
 */
import { listAccountsWithoutGrant, listEndedCredits } from '@sluice/database/billing/account-plans';
import { publishPlans } from '@sluice/database/billing/catalogue-plans';
import type { Database } from '@sluice/database/connection/connection';
import { endHold, listOverdueHolds } from '@sluice/database/credits/credit-holds';
import { expireAccountCredits, giveAllowance } from '@sluice/database/credits/credits';
import { allowanceOf, CREDIT_KINDS } from '@sluice/domain/billing/allowance';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import type { Logger } from '@sluice/platform/process/logger';
import { eachAlone } from '../process/each-alone.ts';

export interface RenewCreditsDeps {
  readonly database: Database;
  readonly catalogue: Catalogue;
  readonly now: () => number;
  readonly logger: Logger;
}

/** Of each plan and kind in one run; the rest waits for the next. */
const ACCOUNTS_MAX = 1_000;

export async function renewCredits({
  database,
  catalogue,
  now,
  logger,
}: RenewCreditsDeps): Promise<void> {
  const nowMs = now();
  const change = database.transaction();
  for (const plan of catalogue.plans) {
    for (const kind of CREDIT_KINDS) {
      const allowance = allowanceOf(plan, kind, nowMs);
      if (!allowance) continue;
      const { key } = allowance;
      const accounts = await listAccountsWithoutGrant(database, kind, plan.id, key, ACCOUNTS_MAX);
      await eachAlone(logger, 'give allowance', accounts, ({ accountId }) =>
        change.execute((transaction) =>
          giveAllowance(transaction, { accountId, kind }, allowance, nowMs),
        ),
      );
    }
  }
  const holds = await listOverdueHolds(database, nowMs, ACCOUNTS_MAX);
  await eachAlone(logger, 'end hold', holds, ({ holdKey, ...account }) =>
    change.execute((transaction) => endHold(transaction, account, holdKey, 0, nowMs)),
  );
  const ended = await listEndedCredits(database, nowMs, ACCOUNTS_MAX);
  await eachAlone(logger, 'end credits', ended, (account) =>
    change.execute((transaction) => expireAccountCredits(transaction, account, nowMs)),
  );
  // Last: the rest is done if it fails.
  await publishPlans(database, catalogue.plans);
}
