/**
 * Time of the first check that found a closed account without subscription.
 *
 * The subscription is the one at the vendor. The trigger forgets the time with every change of `accounts.status`, which
 * is an operator's own statement: an account that is opened and closed again is looked at again.
 *
 * The index holds closed accounts alone: the next accounts to look at are found without reading the finished ones.
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
