/**
 * That the payment vendor is to be told what stands on an account's invoices: an entry of the outbox,
 * which says whom it is about and not what. Whoever tells it reads what is so then; so entries may be told
 * late, twice or in any order.
 */
import type { DatabaseOrTransaction } from './connection.ts';
import { appendToOutbox } from './outbox.ts';

export const CUSTOMER_TOPIC = 'vendor.customer';

/** @param fact - what it is told of; the same fact is told once. */
export async function tellVendor(
  database: DatabaseOrTransaction,
  accountId: number,
  fact: string,
  nowMs: number,
): Promise<void> {
  const payload = { account_id: accountId };
  await appendToOutbox(database, { topic: CUSTOMER_TOPIC, dedupeKey: fact, payload }, nowMs);
}
