/**
 * The gate of merges is made of advisory locks. A lock on a table is one on every node of Citus, and a node that is away would
 * have stopped all batches.
 *
 * Advisory locks have two modes, so merges would exclude each other by one of them. There are sixteen: events share all, and
 * each merge takes one that no other merge has. A seventeenth merge at the same time waits for one of the others.
 *
 * Processes of the version before still lock `merge_gate`: a transaction that keeps merges off takes its side of that
 * one too.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Events share them, the merge of that number has it alone. */
const GATES = sql.lit(0x51_1c_e0_02);
/** Numbers of merges. */
const MERGES = sql.lit(0x51_1c_e0_03);
const LAST = sql.lit(15);

export const mergeGateLock: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create or replace function keep_merges_off() returns boolean language plpgsql as $$
      begin
        for gate in 0 .. ${LAST} loop
          if not pg_try_advisory_xact_lock_shared(${GATES}, gate) then
            -- Gives back those that it has.
            raise exception using errcode = 'lock_not_available';
          end if;
        end loop;
        lock table merge_gate in row exclusive mode nowait;
        return true;
      exception when lock_not_available then
        return false;
      end $$`.execute(database);
    await sql`
      create function wait_to_merge() returns void language plpgsql as $$
      declare
        own int := 0;
      begin
        for gate in 0 .. ${LAST} loop
          if pg_try_advisory_xact_lock(${MERGES}, gate) then
            own := gate;
            exit;
          end if;
        end loop;
        perform pg_advisory_xact_lock(${GATES}, own);
      end $$`.execute(database);
  },
};
