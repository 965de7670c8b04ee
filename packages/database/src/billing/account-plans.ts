/** Plans of accounts, and accounts that wait for this month's allowance. */
import type { CreditKind, Plan } from '@sluice/domain/billing/catalogue';
import type { Address } from '@sluice/domain/accounts/postal-address';
import type { PaymentMethodType } from '@sluice/domain/billing/purchase-workflow';
import { sql } from 'kysely';
import type { DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import type { CreditAccount } from '../credits/credit-transactions.ts';
import { findPendingPurchase } from './purchase-workflows.ts';
import { IS_BUILDER_FROM_TRIAL, endProviderTrialLater } from './provider-customers.ts';

/** Facts about an account for every check of billing. */
export interface BillingAccount {
  readonly accountId: number;
  readonly name: string;
  readonly rail: PaymentMethodType;
  readonly billingEmail: string | null;
  readonly address: Address | null;
  readonly planId: string;
  readonly planName: string;
  readonly planTier: string;
  readonly planStatus: string;
  /** A bank still has to pay for the plan, so it brings no allowance yet. */
  readonly isPlanUnpaid: boolean;
  /** A card was put on file here. False: there may still be one at the payment provider. */
  readonly hasCardOnFile: boolean;
  /** No purchase starts meanwhile (`card-changes.ts`). */
  readonly isCardChanging: boolean;
}

const BILLING_ACCOUNT = sql`
  account_id::int as "accountId", name, billing_rail as rail,
  billing_email as "billingEmail", address, plan_id as "planId",
  plan_name as "planName", plan_tier as "planTier",
  plan_status as "planStatus", plan_unpaid_run_id is not null as "isPlanUnpaid",
  exists (select from vendor_customers c
           where c.account_id = accounts.account_id and c.has_card) as "hasCardOnFile",
  coalesce(card_changing_until > clock_timestamp(), false) as "isCardChanging"`;

/** Index: the primary key. */
export async function findBillingAccount(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<BillingAccount | undefined> {
  const { rows } = await sql<BillingAccount>`
    select ${BILLING_ACCOUNT} from accounts where account_id = ${accountId}`.execute(database);
  return rows[0];
}

/**
 * Puts the account on a plan that it has bought. A closed account stays closed.
 *
 * @param unpaidRunId - the checkout, if a bank still has to pay for it.
 * @param standing - of the subscription that it has for it; undefined leaves the account's present one.
 * @returns the plan that it was on.
 */
export async function updateAccountPlan(
  transaction: Transaction,
  accountId: number,
  {
    plan,
    unpaidRunId,
  }: {
    readonly plan: Pick<Plan, 'id' | 'name' | 'tier'>;
    readonly unpaidRunId: string | null;
  },
  standing: AccountStanding | undefined,
  nowMs: number,
): Promise<string | undefined> {
  const { accountStatus = null, planStatus = null } = standing ?? {};
  const { rows } = await sql<{ planId: string }>`
    with before as (
      select account_id, plan_id from accounts where account_id = ${accountId} for no key update
    )
    update accounts a
       set plan_id = ${plan.id}, plan_name = ${plan.name}, plan_tier = ${plan.tier},
           plan_status = coalesce(${planStatus}, plan_status),
           plan_unpaid_run_id = ${unpaidRunId},
           status = case when status = 'closed' then status
                         else coalesce(${accountStatus}, status) end,
           trial_ends_at = null, updated_at = ${new Date(nowMs)}
      from before
     where a.account_id = before.account_id
    returning before.plan_id as "planId"`.execute(transaction);
  return rows[0]?.planId;
}

/**
 * The checkout that the account's plan is from is paid, or need not be.
 *
 * @returns whether it was that one, and its plan is in force.
 */
export async function settleUnpaidPlan(
  transaction: Transaction,
  accountId: number,
  runId: string,
): Promise<boolean> {
  const { rows } = await sql<{ planStatus: string }>`
    update accounts set plan_unpaid_run_id = null
     where account_id = ${accountId} and plan_unpaid_run_id = ${runId}
    returning plan_status as "planStatus"`.execute(transaction);
  return rows[0]?.planStatus === 'active';
}

export interface AccountStanding {
  readonly accountStatus: string;
  readonly planStatus: string;
}

/** Index: the primary key. */
export async function isBuilderFromTrial(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<boolean> {
  const { rows } = await sql`
    select from accounts where account_id = ${accountId} and ${IS_BUILDER_FROM_TRIAL}`.execute(
    database,
  );
  return rows.length > 0;
}

/**
 * Writes down the present standing of its subscription. A closed account stays closed, and its plan ends with its
 * subscription: when it is opened again it has no plan. An account that went from its trial to the Builder plan stays
 * on that, even if the trial's subscription changes.
 *
 * @returns the standing before and after; undefined if it did not change.
 */
export async function updateAccountStanding(
  transaction: Transaction,
  accountId: number,
  standing: AccountStanding,
  nowMs: number,
): Promise<{ readonly before: AccountStanding; readonly after: AccountStanding } | undefined> {
  const { rows } = await sql<{ status: string; planStatus: string; statusAfter: string }>`
    with before as (
      select account_id, status, plan_status,
             case when status = 'closed' then status else ${standing.accountStatus} end as status_after
        from accounts where account_id = ${accountId} for no key update
    )
    update accounts a
       set status = before.status_after, plan_status = ${standing.planStatus},
           updated_at = ${new Date(nowMs)}
      from before
     where a.account_id = before.account_id
       and not ${IS_BUILDER_FROM_TRIAL}
       and (before.status, before.plan_status) <> (before.status_after, ${standing.planStatus})
    returning before.status, before.plan_status as "planStatus", before.status_after as "statusAfter"`.execute(
    transaction,
  );
  const [row] = rows;
  return (
    row && {
      before: { accountStatus: row.status, planStatus: row.planStatus },
      after: { accountStatus: row.statusAfter, planStatus: standing.planStatus },
    }
  );
}

/**
 * Of all accounts: those on this plan, open, in force and paid, to which this fact has not granted anything yet.
 * Reads every account of the plan; once a minute.
 */
export async function listAccountsWithoutGrant(
  database: DatabaseOrTransaction,
  kind: CreditKind,
  planId: string,
  transactionKey: string,
  limit: number,
): Promise<{ readonly accountId: number }[]> {
  const { rows } = await sql<{ accountId: number }>`
    select account_id::int as "accountId" from accounts a
     where plan_id = ${planId} and plan_status = 'active' and plan_unpaid_run_id is null
       and status <> 'closed'
       and not exists (
         select from credit_transactions t
          where t.account_id = a.account_id and t.kind = ${kind}
            and t.transaction_key = ${transactionKey})
     order by account_id limit ${limit}`.execute(database);
  return rows;
}

/** Of all accounts: kinds with grants that have ended with something left. Index: `credit_grants_ending`. */
export async function listEndedCredits(
  database: DatabaseOrTransaction,
  nowMs: number,
  limit: number,
): Promise<CreditAccount[]> {
  const { rows } = await sql<CreditAccount>`
    select distinct account_id::int as "accountId", kind from credit_grants
     where available > 0 and expires_at <= ${new Date(nowMs)} limit ${limit}`.execute(database);
  return rows;
}

/**
 * Moves an account from an Essentials trial to the Builder plan. A checkout that runs excludes it, and both wait for
 * the account's row, so they cannot both win.
 *
 * The time at which the trial ended is kept and shows that there was one; a plan that is bought later clears it.
 *
 * @returns `unchanged` if it is on the Builder plan from that trial already, `no-trial` if it is in no trial, and
 *   `not-allowed` while a checkout runs.
 */
export async function endEssentialsTrial(
  transaction: Transaction,
  accountId: number,
  builder: Pick<Plan, 'id' | 'name' | 'tier'> | undefined,
  nowMs: number,
): Promise<'downgraded' | 'unchanged' | 'no-trial' | 'not-allowed'> {
  const { rows } = await sql<{ tier: string; status: string; isFromTrial: boolean }>`
    select plan_tier as tier, plan_status as status, trial_ends_at is not null as "isFromTrial"
      from accounts where account_id = ${accountId} for update`.execute(transaction);
  const [account] = rows;
  const isInTrial = account?.tier === 'essentials' && account.status === 'trialing';
  const wasInTrial = account?.tier === 'builder' && account.isFromTrial;
  if (!isInTrial && !wasInTrial) return 'no-trial';
  // A statement of its own: it must see the checkout whose start the lock has waited for.
  if (!builder || (await findPendingPurchase(transaction, accountId, 'checkout')))
    return 'not-allowed';
  if (wasInTrial) return 'unchanged';
  const standing = { accountStatus: 'active', planStatus: 'active' };
  await updateAccountPlan(
    transaction,
    accountId,
    { plan: builder, unpaidRunId: null },
    standing,
    nowMs,
  );
  await sql`
    update accounts set trial_ends_at = ${new Date(nowMs)} where account_id = ${accountId}`.execute(
    transaction,
  );
  // The subscription would go on at the payment provider, and be charged when the trial is over.
  await endProviderTrialLater(transaction, accountId, nowMs);
  return 'downgraded';
}
