/**
 * What may still happen to a purchase that has succeeded: its price goes back to the customer, and its credits are
 * taken back.
 *
 * A version from before reads the new reason nowhere but in the ledger that the API shows. `not valid`, so that the table is
 * not read under the lock: its rows keep the narrower rule that goes.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const purchasesAfterTheirEnd: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      alter table credit_transactions drop constraint credit_transactions_reason_check,
        add constraint credit_transactions_reason_check
          check (reason in ('grant', 'debit', 'hold', 'capture', 'refund', 'expiry', 'reversal')) not valid`.execute(
      database,
    );
  },
};
