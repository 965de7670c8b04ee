/**
 * The advisory gate between merges of people and unlocked reads.
 * An event that locks its identifier's row dirties a page for no change: at 10⁶ people 0.27 whole pages of log an event,
 * three fourths of its writes (`benchmarks/README.md`, "growth"). The lock is only needed against a merge, which moves
 * stored events and would leave behind one that it cannot see yet. Sixteen advisory locks last to the transaction's end.
 *   events   share all sixteen ─┐ held by any number of one side
 *   merges   one each, alone   ─┘ or by up to sixteen of the other, never by both
 * Events never wait: if a merge is in progress, or waits, they lock their rows instead. So a merge waits only for
 * transactions that began before it. A transaction that waits here holds only its claim. So only two runs of the same
 * commit batch can deadlock: that is a conflict like any other, and tried again. On Citus the locks are the
 * coordinator's, which releases them only after the nodes have committed. `migrations/0058_merge_gate_lock.ts` has the
 * reason for sixteen, and the lock of old code, which locks a table.
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
 * Waits until no transaction keeps merges off, and lets no other keep them off until this one ends. Merges do not wait
 * for each other, up to sixteen at a time. For commit batches that were not logged at their queue, such as batches of
 * an older intake: the log keeps all others apart.
 */
export async function waitToMerge(transaction: DatabaseOrTransaction): Promise<void> {
  await sql`select wait_to_merge()`.execute(transaction);
}
