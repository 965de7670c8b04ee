/**
 * Receipts for an account's payments. Found by the primary key (account_id, receipt_id). Refunds are kept with the
 * purchase, which has its receipt's id (primary key of `runs`).
 */
import type { Receipt, ShownReceipt } from '@sluice/domain/billing/purchase-receipt';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export async function findReceipt(
  database: DatabaseOrTransaction,
  accountId: number,
  receiptId: string,
): Promise<ShownReceipt | undefined> {
  const { rows } = await sql<Omit<ShownReceipt, 'total'> & { total: string }>`
    select receipt_id as "receiptId", number, issued_at as "issuedAt", billed_to as "billedTo", lines, total,
           currency, payment_method as "paymentMethod",
           (select result -> 'reversal' from runs
             where runs.account_id = receipts.account_id and run_id = receipt_id) as reversal
      from receipts where account_id = ${accountId} and receipt_id = ${receiptId}`.execute(
    database,
  );
  const [row] = rows;
  return row && { ...row, total: Number(row.total) };
}

/** Writes it once: a second call changes no row. Call it in the transaction that settles the payment. */
export async function insertReceipt(
  database: DatabaseOrTransaction,
  accountId: number,
  receipt: Receipt,
): Promise<void> {
  await sql`
    insert into receipts
      (account_id, receipt_id, number, issued_at, billed_to, lines, total, currency, payment_method)
    values (${accountId}, ${receipt.receiptId}, ${receipt.number}, ${receipt.issuedAt}, ${receipt.billedTo},
            ${JSON.stringify(receipt.lines)}::jsonb, ${receipt.total}, ${receipt.currency}, ${receipt.paymentMethod})
    on conflict (account_id, receipt_id) do nothing`.execute(database);
}
