/**
 * Holds plans and allowances of the API to the workers' catalogue.
 *
 * The catalogue is a file of each process. Workers publish its plans here (`billing/catalogue-plans.ts`). From then on
 * Postgres refuses to all but workers (`0076_settled_by_worker.ts`)
 *
 * - an allowance that, with the earlier ones of its month, is more than the account's plan includes, or of a later month
 * - a plan after a trial that is no Builder plan of the catalogue
 *
 * Until the first publication 0076 alone decides.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** A grant ends within its month, or with it. */
const monthOf = (end: string) =>
  `date_trunc('month', (${end} - interval '1 microsecond') at time zone 'UTC')`;

export const cataloguePlans: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table catalogue_plans (
        plan_id text primary key,
        name text not null,
        tier text not null,
        -- Kind of credit → the month's allowance.
        included jsonb not null
      )`.execute(database);
    const { rows } = await sql<{ name: string }>`
      select quote_ident(current_schema()) as name`.execute(database);
    const path = sql.raw(`search_path = ${rows[0]?.name ?? 'public'}, pg_temp`);
    await sql`
      create function require_included() returns trigger language plpgsql set ${path} as $body$
      declare
        included bigint;
        given bigint;
      begin
        if has_table_privilege('receipts', 'insert') or not exists (select from catalogue_plans) then
          return new;
        end if;
        -- Two grants at the same time must see each other, or fail by their isolation.
        update credit_accounts set last_grant_id = last_grant_id
         where account_id = new.account_id and kind = new.kind;
        select (p.included ->> new.kind)::bigint into included
          from accounts a join catalogue_plans p using (plan_id)
         where a.account_id = new.account_id and a.plan_unpaid_run_id is null
           and a.plan_status = 'active' and a.plan_tier <> 'builder' and p.tier <> 'builder';
        select coalesce(sum(g.granted), 0) into given from credit_grants g
         where g.account_id = new.account_id and g.kind = new.kind and g.pool = 'monthly_allowance'
           and ${sql.raw(monthOf('g.expires_at'))} = ${sql.raw(monthOf('new.expires_at'))};
        -- An hour: the clocks of the API and of Postgres may differ at the end of a month.
        if given + new.granted <= included
           and ${sql.raw(monthOf('new.expires_at'))} <= ${sql.raw(monthOf(`clock_timestamp() + interval '1 hour'`))} then
          return new;
        end if;
        raise exception 'only a worker may grant more than the plan includes'
          using errcode = 'insufficient_privilege';
      end
      $body$`.execute(database);
    await sql`
      create trigger credit_allowances_by_catalogue before insert on credit_grants for each row
        when (new.pool = 'monthly_allowance') execute function require_included()`.execute(
      database,
    );
    await sql`
      create function require_builder_plan() returns trigger language plpgsql set ${path} as $body$
      begin
        if has_table_privilege('receipts', 'insert') or not exists (select from catalogue_plans)
           or exists (select from catalogue_plans p
                       where p.plan_id = new.plan_id and p.tier = 'builder') then
          return new;
        end if;
        raise exception 'only a worker may put an account on this plan'
          using errcode = 'insufficient_privilege';
      end
      $body$`.execute(database);
    await sql`
      create trigger plans_by_catalogue before update of plan_id on accounts for each row
        when (old.plan_id is distinct from new.plan_id)
        execute function require_builder_plan()`.execute(database);
  },
};
