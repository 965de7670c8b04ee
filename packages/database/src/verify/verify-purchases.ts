/**
 * Our ledger of purchases as `domain/src/billing/compare-purchases.ts` wants them, of all accounts; `npm run verify`
 * asks.
 */
import type { BookedPurchase, BookedSubscriber } from '@sluice/domain/billing/compare-purchases';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** Reads every run; the credits of each by `credit_entries_of_transaction`. */
export async function listBookedPurchases(
  database: DatabaseOrTransaction,
): Promise<BookedPurchase[]> {
  const { rows } = await sql<BookedPurchase>`
    select account_id::int as "accountId", run_id as "runId", status,
           review_reason is not null as "isSetAside", billed.invoice_id as "invoiceId",
           nullif(result -> 'charged', 'null') as charged,
           coalesce(result ?| '{due,givenUp}', false) as "isAwaited",
           coalesce((result #>> '{reversal,amount,amount}')::float8, 0) as returned,
           (content -> 'purchase' ->> 'quantity')::int as quantity,
           coalesce(given.amount, 0)::int as granted
      from runs
     cross join lateral (
       select coalesce(runs.invoice_id, runs.result ->> 'invoiceId') as invoice_id) as billed
      left join lateral (
        select sum(amount) as amount from credit_entries e
         where e.account_id = runs.account_id and e.kind = runs.content -> 'purchase' ->> 'kind'
           and e.transaction_key = 'grant:invoice:' || billed.invoice_id) as given on true
     order by account_id, created_at`.execute(database);
  return rows;
}

/**
 * Accounts with a plan that they have bought and that is in force, each with the prices that its
 * subscription must have: the latest plan's, and every add-on's that was added.
 */
export async function listBookedSubscribers(
  database: DatabaseOrTransaction,
): Promise<BookedSubscriber[]> {
  const { rows } = await sql<BookedSubscriber>`
    select a.account_id::int as "accountId", c.customer_id as "customerId",
           array[plan.price_id] || coalesce(addons.skus, '{}') as "priceIds"
      from accounts a
      join vendor_customers c using (account_id)
      join lateral (
        select content -> 'plan' ->> 'priceId' as price_id, content -> 'plan' ->> 'id' as plan_id
          from runs r
         where r.account_id = a.account_id and r.kind = 'checkout' and r.status = 'success'
         order by finished_at desc limit 1) as plan on plan.plan_id = a.plan_id
      left join lateral (
        select array_agg(distinct item ->> 'sku') as skus
          from runs r, jsonb_array_elements(r.result -> 'items') as item
         where r.account_id = a.account_id and r.kind = 'addons' and r.status = 'success'
           and item ->> 'result' = 'added') as addons on true
     where a.plan_status not in ('canceled', 'paused') and a.status <> 'closed'
     order by a.account_id`.execute(database);
  return rows;
}

/** Whether anybody of ours is known to the payment provider at all. */
export async function hasProviderCustomers(database: DatabaseOrTransaction): Promise<boolean> {
  const { rows } = await sql`select from vendor_customers limit 1`.execute(database);
  return rows.length > 0;
}
