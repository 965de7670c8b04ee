/**
 * The gate between transactions that merge people and transactions that read who somebody is without locking it.
 *
 * An event that holds its identifier's row dirties a page for nothing: at 10⁶ people that was 0.27 whole pages of log
 * an event, three fourths of all it wrote (`benchmarks/README.md`, "growth"). What the row was held for is a merge, which
 * moves stored events and would leave behind one that it cannot see yet.
 *
 * ```
 *   events   share all sixteen ─┐ advisory locks: held by any number of one side
 *   merges   one each, alone   ─┘ or by up to sixteen of the other, never by both; until the end of the transaction
 * ```
 *
 * Events never wait: where a merge is under way, or waits, they lock their rows instead. So a merge waits only for
 * the transactions that were there before it, and where merges come all the time there are none. A transaction that
 * waits here holds only its claim, so there is no deadlock, except where two run the same commit batch at the same
 * time: that is a conflict like any other, and tried again.
 *
 * On Citus the locks are the coordinator's, which gives them back only when the nodes have committed. Why sixteen, and old
 * code, which locks a table: `migrations/0058_merge_gate_lock.ts`.
 */
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/**
 * Inside of the statement that claims: tries to keep merges off until the end of the transaction, and notes whether
 * it does (`MERGES_ARE_KEPT_OFF`). Only statements after this one see all merges that ended before.
 *
 * @param isTried - false: only notes that this code knows the gate.
 */
export function tryToKeepMergesOff(isTried: boolean): RawBuilder<unknown> {
  return sql`set_config('sluice.merges_kept_off', (case when ${isTried}::boolean then keep_merges_off() else false end)::text, true)`;
}

export const MERGES_ARE_KEPT_OFF = sql`current_setting('sluice.merges_kept_off')::boolean`;

/**
 * Waits until nobody keeps merges off, and lets nobody begin to until the end of the transaction. Merges do not wait for each
 * other, up to sixteen at a time. For commit batches that were not logged where they wait, as those of an older intake: the
 * log keeps all others apart.
 */
export async function waitToMerge(transaction: DatabaseOrTransaction): Promise<void> {
  await sql`select wait_to_merge()`.execute(transaction);
}
