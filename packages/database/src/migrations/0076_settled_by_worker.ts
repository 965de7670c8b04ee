/**
 * Refuses rows of billing to all but workers.
 *
 * Rights to columns refuse the others. These are rows that the API writes too, with other values. A role with the right
 * to write receipts settles purchases, so the worker's and the owner. To all others the triggers refuse
 *
 * - credits that are no allowance of a month, their entries, and facts other than a debit, its refund or an allowance
 * - credits that had expired or are held, and come back
 * - a change of an account's plan or standing, except from an Essentials trial to the Builder plan
 * - the loss of an event of the payment provider that is not applied yet
 *
 * No role is named here: a role may be made after its migration, or never.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

const PLAN = ['plan_id', 'plan_name', 'plan_tier', 'plan_status', 'plan_unpaid_run_id', 'status'];

/** By the name of the trigger. */
const REFUSALS = {
  credit_grants_by_settlers: `insert on credit_grants for each row
    when (new.pool <> 'monthly_allowance')`,
  credit_places_by_settlers: `update on credit_grants for each row
    when (new.expired < old.expired or new.held <> old.held)`,
  credit_facts_by_settlers: `insert on credit_transactions for each row
    when (new.reason not in ('debit', 'refund')
          and not (new.reason = 'grant' and new.transaction_key like 'allowance:%'))`,
  credit_holds_by_settlers: `insert on credit_entries for each row
    when ('held' in (new.from_place, new.to_place))`,
  plans_by_settlers: `update of ${[...PLAN, 'trial_ends_at'].join(', ')} on accounts for each row
    when ((${PLAN.map((column) => `old.${column}`).join(', ')})
            is distinct from (${PLAN.map((column) => `new.${column}`).join(', ')})
          and not (old.plan_tier = 'essentials' and old.plan_status = 'trialing'
                   and new.plan_tier = 'builder' and new.plan_status = 'active'
                   and new.status = case old.status when 'closed' then 'closed' else 'active' end
                   and new.plan_unpaid_run_id is null)
          or old.trial_ends_at is distinct from new.trial_ends_at and new.plan_tier <> 'builder')`,
  provider_events_by_settlers: `delete on vendor_events for each row when (old.settled_at is null)`,
} as const;

export const settledByWorker: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Names are looked up in the tables' schema, and never among the caller's temporary tables first.
    const { rows } = await sql<{ name: string }>`
      select quote_ident(current_schema()) as name`.execute(database);
    const path = sql.raw(`search_path = ${rows[0]?.name ?? 'public'}, pg_temp`);
    await sql`
      create function require_settler() returns trigger language plpgsql set ${path} as $body$
      begin
        if not has_table_privilege('receipts', 'insert') then
          raise exception 'only a worker may do this % on %', lower(tg_op), tg_table_name
            using errcode = 'insufficient_privilege';
        end if;
        if tg_op = 'DELETE' then
          return old;
        end if;
        return new;
      end
      $body$`.execute(database);
    for (const [name, refusal] of Object.entries(REFUSALS))
      await sql`
        create trigger ${sql.ref(name)} before ${sql.raw(refusal)} execute function require_settler()`.execute(
        database,
      );
    // It needs the row of another table.
    await sql`
      create function require_issuer() returns trigger language plpgsql set ${path} as $body$
      begin
        if not has_table_privilege('receipts', 'insert') and not exists (
          select from credit_grants g
           where g.account_id = new.account_id and g.kind = new.kind and g.grant_id = new.grant_id
             and g.pool = 'monthly_allowance') then
          raise exception 'only a worker may issue these credits' using errcode = 'insufficient_privilege';
        end if;
        return new;
      end
      $body$`.execute(database);
    await sql`
      create trigger credit_issues_by_settlers before insert on credit_entries for each row
        when (new.from_place = 'issued') execute function require_issuer()`.execute(database);
  },
};
