/**
 * Customers of the payment provider by account, and outbox entries about them. The entries bring the account's invoice
 * data to the provider. An entry names the account, not the values: the present values are read when it is sent. So
 * entries may be sent late, twice or in any order.
 *
 * Index: the primary key, unless a statement has another in its comment.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { appendToOutbox } from '../changes/outbox.ts';

export const CUSTOMER_TOPIC = 'vendor.customer';

/** @param fact - cause of the update; the same fact is sent once. */
export async function updateProviderLater(
  database: DatabaseOrTransaction,
  accountId: number,
  fact: string,
  nowMs: number,
): Promise<void> {
  const payload = { account_id: accountId };
  await appendToOutbox(database, { topic: CUSTOMER_TOPIC, dedupeKey: fact, payload }, nowMs);
}

/** The entry ends the account's subscription at the payment provider, unless the account has bought a plan since. */
export const TRIAL_ENDED_TOPIC = 'vendor.trial_ended';

export async function endProviderTrialLater(
  transaction: Transaction,
  accountId: number,
  nowMs: number,
): Promise<void> {
  const fact = { topic: TRIAL_ENDED_TOPIC, dedupeKey: `account ${accountId} ${nowMs}` };
  await appendToOutbox(transaction, { ...fact, payload: { account_id: accountId } }, nowMs);
}

/** On the Builder plan from a trial, with no plan bought since: then the account's plan comes from no subscription. */
export const IS_BUILDER_FROM_TRIAL = sql`(plan_tier = 'builder' and trial_ends_at is not null)`;

export async function findProviderCustomer(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<string | undefined> {
  const { rows } = await sql<{ customerId: string }>`
    select customer_id as "customerId" from vendor_customers where account_id = ${accountId}`.execute(
    database,
  );
  return rows[0]?.customerId;
}

/** Index: `vendor_customers_by_customer`. */
export async function findAccountOfCustomer(
  database: DatabaseOrTransaction,
  customerId: string,
): Promise<number | undefined> {
  const { rows } = await sql<{ accountId: number }>`
    select account_id::int as "accountId" from vendor_customers where customer_id = ${customerId}`.execute(
    database,
  );
  return rows[0]?.accountId;
}

/**
 * Writes the account's customer, in a transaction. The first one stays: an account has one customer. The provider then
 * gets the data that it lacks.
 *
 * @returns the one that the account has, which may be another.
 */
export async function insertProviderCustomer(
  database: DatabaseOrTransaction,
  accountId: number,
  customerId: string,
  nowMs: number,
): Promise<string> {
  const { rows } = await sql`
    insert into vendor_customers (account_id, customer_id) values (${accountId}, ${customerId})
    on conflict (account_id) do nothing returning 1`.execute(database);
  if (rows.length === 0) return (await findProviderCustomer(database, accountId)) ?? customerId;
  await updateProviderLater(database, accountId, `account ${accountId}`, nowMs);
  return customerId;
}

export interface ClosedCustomer {
  readonly accountId: number;
  /** Null: the payment provider knows no customer for it yet. */
  readonly customerId: string | null;
}

/**
 * The check is repeated for this time after the provider first had no subscription left. An older version starts a
 * purchase without a look at whether the account is closed, in a transaction that may end later.
 */
const LOOK_AGAIN_MS = 600_000;

/** Closed, and still on a plan that it has bought. Indexes: `accounts_closed_on_plan`, then `runs_by_time`. */
const IS_CLOSED_ON_PLAN = sql`
  a.status = 'closed' and a.plan_status <> 'canceled' and not ${IS_BUILDER_FROM_TRIAL}
  and exists (select from runs r
               where r.account_id = a.account_id and r.kind = 'checkout' and r.status = 'success')`;

/**
 * Accounts of the whole installation that are closed and may still have a subscription at the payment provider, or are
 * still on a plan without one. In no order, so that one about which the payment provider cannot answer does not always
 * stand before the others. Index: `accounts_closed`.
 */
export async function listClosedCustomers(
  database: DatabaseOrTransaction,
  nowMs: number,
  limit: number,
): Promise<ClosedCustomer[]> {
  const { rows } = await sql<ClosedCustomer>`
    select a.account_id::int as "accountId", c.customer_id as "customerId"
      from accounts a
      left join vendor_customers c on c.account_id = a.account_id
     where a.account_id in (
       select account_id from accounts
        where status = 'closed'
          and coalesce(subscriptions_ended_at, 'infinity') > ${new Date(nowMs - LOOK_AGAIN_MS)}
       union
       select a.account_id from accounts a
         join vendor_customers using (account_id)
        where ${IS_CLOSED_ON_PLAN})
     order by random() limit ${limit}`.execute(database);
  return rows;
}

/** @returns whether it is closed, and still on a plan that it has bought; then it stays so until the transaction ends. */
export async function lockClosedOnPlan(
  transaction: Transaction,
  accountId: number,
): Promise<boolean> {
  const { rows } = await sql`
    select from accounts a
     where a.account_id = ${accountId} and ${IS_CLOSED_ON_PLAN} for no key update`.execute(
    transaction,
  );
  return rows.length > 0;
}

export async function isAccountClosed(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<boolean> {
  const { rows } = await sql`
    select from accounts where account_id = ${accountId} and status = 'closed'`.execute(database);
  return rows.length > 0;
}

/**
 * Whether all of its subscriptions at the payment provider have ended, and no new one can come. The first time stays
 * until a subscription comes.
 */
export async function noteSubscriptionsEnded(
  database: DatabaseOrTransaction,
  accountId: number,
  haveEnded: boolean,
  nowMs: number,
): Promise<void> {
  await sql`
    update accounts set subscriptions_ended_at = ${haveEnded ? new Date(nowMs) : null}
     where account_id = ${accountId} and status = 'closed'
       and (subscriptions_ended_at is null) = ${haveEnded}`.execute(database);
}
