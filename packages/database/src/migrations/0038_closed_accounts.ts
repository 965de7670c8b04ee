/**
 * When it was first seen that an account that is closed has no subscription at the vendor any more. The trigger
 * forgets it with every change of `accounts.status`, which is an operator's own statement: an account that is opened
 * and closed again is looked at again.
 *
 * The index holds closed accounts alone: the next to be looked at are found without reading those that are done.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const closedAccounts: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table accounts add column subscriptions_ended_at timestamptz`.execute(database);
    await sql`
      create function forget_subscriptions_ended() returns trigger language plpgsql as $$
      begin
        new.subscriptions_ended_at := null;
        return new;
      end $$`.execute(database);
    await sql`
      create trigger accounts_change_status before update of status on accounts for each row
        when (old.status is distinct from new.status)
        execute function forget_subscriptions_ended()`.execute(database);
    await sql`
      create index accounts_closed on accounts ((coalesce(subscriptions_ended_at, 'infinity')))
        where status = 'closed'`.execute(database);
  },
};
