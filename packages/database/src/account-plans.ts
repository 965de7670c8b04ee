/** Which plan an account is on, and which accounts wait for this month's allowance. */
import type { CreditKind, Plan } from '@sluice/domain/catalogue';
import type { Rail } from '@sluice/domain/run';
import { sql, type Transaction } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';
import type { Tables } from './tables.ts';

/** What every gate of billing asks of an account. */
export interface BillingAccount {
  readonly accountId: number;
  readonly name: string;
  readonly rail: Rail;
  readonly currency: string;
  readonly billingEmail: string | null;
  readonly planId: string;
  readonly planTier: string;
  readonly planStatus: string;
}

const BILLING_ACCOUNT = sql`
  account_id::int as "accountId", name, billing_rail as rail, currency,
  billing_email as "billingEmail", plan_id as "planId", plan_tier as "planTier",
  plan_status as "planStatus"`;

/** Index: the primary key. */
export async function findBillingAccount(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<BillingAccount | undefined> {
  const { rows } = await sql<BillingAccount>`
    select ${BILLING_ACCOUNT} from accounts where account_id = ${accountId}`.execute(database);
  return rows[0];
}

/** Puts the account on a plan that it has paid for. */
export async function updateAccountPlan(
  transaction: Transaction<Tables>,
  accountId: number,
  plan: Pick<Plan, 'id' | 'name' | 'tier'>,
  nowMs: number,
): Promise<void> {
  await sql`
    update accounts
       set plan_id = ${plan.id}, plan_name = ${plan.name}, plan_tier = ${plan.tier},
           plan_status = 'active', trial_ends_at = null, updated_at = ${new Date(nowMs)}
     where account_id = ${accountId}`.execute(transaction);
}

/**
 * Of all accounts: those on one of these plans, paid and not paused, to which this fact has not granted
 * anything yet. Index: the primary keys; the accounts are read one after another.
 */
export async function listAccountsWithoutGrant(
  database: DatabaseOrTransaction,
  kind: CreditKind,
  planIds: readonly string[],
  transactionKey: string,
  limit: number,
): Promise<BillingAccount[]> {
  const { rows } = await sql<BillingAccount>`
    select ${BILLING_ACCOUNT} from accounts a
     where plan_id = any(${[...planIds]}::text[]) and plan_status = 'active'
       and not exists (
         select from credit_transactions t
          where t.account_id = a.account_id and t.kind = ${kind}
            and t.transaction_key = ${transactionKey})
     order by account_id limit ${limit}`.execute(database);
  return rows;
}
