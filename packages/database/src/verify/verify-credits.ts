/**
 * Computes the credit pools again from the ledger: each grant's places must be the sum of its moves. Beside
 * `credits.ts`, which writes both; `npm run verify` asks.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface CreditDifference {
  readonly accountId: number;
  readonly kind: string;
  readonly grantId: number;
  /** `available held used expired`, as the row has it and as the moves make it. */
  readonly kept: string;
  readonly recomputed: string;
}

/** Of all accounts; reads both tables whole, in one snapshot. */
export async function listCreditDifferences(
  database: DatabaseOrTransaction,
): Promise<CreditDifference[]> {
  const { rows } = await sql<CreditDifference>`
    select account_id::int as "accountId", kind, grant_id as "grantId", kept, recomputed
      from (
        select g.account_id, g.kind, g.grant_id,
               concat_ws(' ', g.available, g.held, g.used, g.expired) as kept,
               concat_ws(' ', e.available, e.held, e.used, e.expired) as recomputed
          from credit_grants g
          left join (
            select account_id, kind, grant_id,
                   ${placeSum('available')} as available, ${placeSum('held')} as held,
                   ${placeSum('used')} as used, ${placeSum('expired')} as expired
              from credit_entries group by account_id, kind, grant_id) e
            using (account_id, kind, grant_id)
      ) as compared
     where kept <> recomputed
     order by account_id, kind, grant_id`.execute(database);
  return rows;
}

const placeSum = (place: string) => sql`
  coalesce(sum(amount) filter (where to_place = ${place}), 0)
    - coalesce(sum(amount) filter (where from_place = ${place}), 0)`;

export async function countCreditGrants(database: DatabaseOrTransaction): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from credit_grants`.execute(database);
  return rows[0]?.count ?? 0;
}
