/**
 * The card on file: a change of it is recorded, and kept apart from purchases. Neither begins while the other is
 * under way, so no purchase changes its card on the way (`account-conventions.md` §4.9).
 *
 * A change under way is a time in the account's row, not a lock, because the payment provider is asked meanwhile. The
 * process that began it ends it; if that dies, the change ends by itself. If a change and a purchase begin at the
 * same moment, the lock of the account's row lets one through first. Times are the database's own. Index: the primary
 * key.
 */
import { sql } from 'kysely';
import { recordChange, type ChangeOrigin } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { listPendingPurchases, type PurchaseWorkflow } from './purchase-workflows.ts';

export type CardChange =
  | { readonly outcome: 'begun'; readonly until: Date }
  | { readonly outcome: 'purchase-in-flight'; readonly workflow: PurchaseWorkflow }
  /** Another change is under way. */
  | { readonly outcome: 'changing' };

/** Purchases by card are not in the way: there the payer names the card. */
export function beginCardChange(
  database: Database,
  accountId: number,
  durationMs: number,
): Promise<CardChange> {
  return database.transaction().execute(async (transaction) => {
    await sql`select from accounts where account_id = ${accountId} for update`.execute(transaction);
    // A statement of its own: it must see the purchase whose start the lock has waited for.
    const [workflow] = await listPendingPurchases(transaction, accountId);
    if (workflow) return { outcome: 'purchase-in-flight', workflow };
    const { rows } = await sql<{ until: Date }>`
      update accounts
         set card_changing_until =
               date_trunc('milliseconds', clock_timestamp() + ${durationMs} * interval '1 millisecond')
       where account_id = ${accountId}
         and (card_changing_until is null or card_changing_until <= clock_timestamp())
      returning card_changing_until as until`.execute(transaction);
    return rows[0] ? { outcome: 'begun', ...rows[0] } : { outcome: 'changing' };
  });
}

/** @param until - of the change to end; a later change goes on. */
export async function endCardChange(
  database: DatabaseOrTransaction,
  accountId: number,
  until: Date,
): Promise<void> {
  await sql`
    update accounts set card_changing_until = null
     where account_id = ${accountId} and card_changing_until = ${until}`.execute(database);
}

/**
 * Records that the account pays with this card from now on. Call it last: the audit log is locked.
 *
 * @returns the entry's id.
 */
export async function recordCardOnFile(
  transaction: Transaction,
  accountId: number,
  origin: ChangeOrigin,
  paymentMethodId: string,
  nowMs: number,
): Promise<number | undefined> {
  await sql`
    update vendor_customers set has_card = true
     where account_id = ${accountId} and not has_card`.execute(transaction);
  const change = {
    objectType: 'payment_method',
    objectId: accountId,
    before: {},
    after: { default: paymentMethodId },
  } as const;
  return recordChange(transaction, accountId, origin, change, nowMs);
}

/**
 * For the start of a purchase. If the result is `free`, no change of the card begins and the account is not closed
 * until the transaction ends: every transaction that sees the account closed sees this purchase too. `for share`, since
 * closing it is an update that touches no key.
 *
 * @param isAlone - true: another start of this account that also sets it waits until the transaction ends, and sees the
 *   purchase that it has started.
 */
export async function holdAccountToBuy(
  transaction: Transaction,
  accountId: number,
  isAlone: boolean,
): Promise<'free' | 'card-changing' | 'closed'> {
  const { rows } = await sql<{ state: 'free' | 'card-changing' | 'closed' }>`
    select case when status = 'closed' then 'closed'
                when card_changing_until > clock_timestamp() then 'card-changing'
                else 'free' end as state
      from accounts where account_id = ${accountId} for ${isAlone ? sql`no key update` : sql`share`}`.execute(
    transaction,
  );
  return rows[0]?.state ?? 'closed';
}
