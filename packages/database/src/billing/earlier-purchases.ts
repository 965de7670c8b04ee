/** Earlier purchases of an account, as they were sold. Beside `purchase-workflows.ts`. */
import type { BoughtAddon } from '@sluice/domain/billing/addon-decision';
import type { Plan } from '@sluice/domain/billing/catalogue';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** The payment provider's prices of the plans that the account has bought, as they were then. Index: `runs_by_time`. */
export async function listBoughtPlanPrices(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<string[]> {
  const { rows } = await sql<{ priceId: string }>`
    select distinct content -> 'plan' ->> 'priceId' as "priceId" from runs
     where account_id = ${accountId} and kind = 'checkout' and status = 'success'`.execute(
    database,
  );
  return rows.map(({ priceId }) => priceId);
}

/**
 * The add-on prices that the account has bought, each with its add-on as it was kept with the purchase. Index:
 * `runs_by_time`.
 */
export async function listBoughtAddons(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<BoughtAddon[]> {
  const { rows } = await sql<BoughtAddon>`
    select item ->> 'sku' as sku, max(price ->> 'addon') as addon
      from runs
     cross join lateral jsonb_array_elements(result -> 'items') as item
      left join lateral jsonb_array_elements(content -> 'prices') as price
        on price ->> 'sku' = item ->> 'sku'
     where account_id = ${accountId} and kind = 'addons' and status = 'success'
       and item ->> 'result' = 'added'
     group by item ->> 'sku'`.execute(database);
  return rows;
}

/** The checkout that the account's plan is from. Index: `runs_by_time`. */
export async function findLatestCheckout(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<string | undefined> {
  const { rows } = await sql<{ runId: string }>`
    select run_id as "runId" from runs
     where account_id = ${accountId} and kind = 'checkout' and status = 'success'
     order by created_at desc, run_id desc limit 1`.execute(database);
  return rows[0]?.runId;
}

/** The latest paid plan, as it was sold. Index: `runs_by_time`. */
export async function findPaidPlan(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<Plan | undefined> {
  const { rows } = await sql<{ plan: Plan }>`
    select content -> 'plan' as plan from runs
     where account_id = ${accountId} and kind = 'checkout' and status = 'success'
       and not result ?| '{due,givenUp}'
     order by created_at desc, run_id desc limit 1`.execute(database);
  return rows[0]?.plan;
}
