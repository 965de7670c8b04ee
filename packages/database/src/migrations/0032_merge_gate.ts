/**
 * The gate between merges of people and unlocked reads (`merge-gate.ts`).
 *
 * A table without rows, of which only the lock is used. `keep_merges_off` tries for it inside of a block, so that one
 * who does not get it goes on without.
 *
 * Processes of the version before do not know it and merge while events are read: a trigger on the claim, which each of
 * their transactions begins with, takes the side of merges for them. It goes in a later version.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const mergeGate: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`create table merge_gate (never boolean primary key check (false))`.execute(database);

    await sql`
      create function keep_merges_off() returns boolean language plpgsql as $$
      begin
        lock table merge_gate in row exclusive mode nowait;
        return true;
      exception when lock_not_available then
        return false;
      end $$`.execute(database);

    await sql`
      create function merge_as_before() returns trigger language plpgsql as $$
      begin
        lock table merge_gate in share mode;
        return new;
      end $$`.execute(database);
    // Waits for the transactions that have claimed, so that every transaction after it has the trigger.
    await sql`
      create trigger envelopes_of_old_code before insert on envelopes for each row
        when (coalesce(current_setting('sluice.merges_kept_off', true), '') = '')
        execute function merge_as_before()`.execute(database);
  },
};
