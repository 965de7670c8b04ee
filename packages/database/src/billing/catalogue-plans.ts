/**
 * Plans of the workers' catalogue, published in Postgres.
 *
 * Triggers compare them with the plans and allowances that the API writes (`migrations/0077_catalogue_plans.ts`).
 */
import type { Plan } from '@sluice/domain/billing/catalogue';
import { sql } from 'kysely';
import type { Database } from '../connection/connection.ts';

/** Makes the plans the published ones. A call with the same plans writes no row. Index: the primary key. */
export async function publishPlans(database: Database, plans: readonly Plan[]): Promise<void> {
  const rows = plans.map(({ id, name, tier, included }) => ({ plan_id: id, name, tier, included }));
  await sql`
    with gone as (
      delete from catalogue_plans where plan_id <> all(${plans.map(({ id }) => id)}::text[])
    )
    insert into catalogue_plans as published (plan_id, name, tier, included)
    select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
             as sold (plan_id text, name text, tier text, included jsonb)
     order by plan_id
    on conflict (plan_id) do update
       set name = excluded.name, tier = excluded.tier, included = excluded.included
     where (published.name, published.tier, published.included)
           is distinct from (excluded.name, excluded.tier, excluded.included)`.execute(database);
}
