/**
 * Closed days also summed by workspace, by user and altogether: two years of a summary are then a row a
 * day, and not one for every user in every workspace.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const usageByGrain: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table inbox_preview_days
        drop constraint inbox_preview_days_pkey,
        -- What a row is of. Whatever it adds up over is 0.
        add column grain text not null default 'workspace_user'
          check (grain in ('workspace_user', 'workspace', 'user', 'day'))`.execute(database);
    await sql`alter table inbox_preview_days alter column grain drop default`.execute(database);
    await sql`
      insert into inbox_preview_days
        (account_id, grain, usage_day, environment_id, user_id, runs, used, refunded)
      select account_id, (array['workspace', 'user', 'day'])[grouping(environment_id, user_id)],
             usage_day, coalesce(environment_id, 0), coalesce(user_id, 0), sum(runs), sum(used),
             sum(refunded)
        from inbox_preview_days
       group by grouping sets ((account_id, usage_day, environment_id), (account_id, usage_day, user_id),
                               (account_id, usage_day))`.execute(database);
    await sql`
      alter table inbox_preview_days
        add primary key (account_id, grain, usage_day, environment_id, user_id)
          include (runs, used, refunded)`.execute(database);
  },
};
