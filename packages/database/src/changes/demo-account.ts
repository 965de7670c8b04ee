/** The demo's accounts among others. Everybody who opens the demo reads their audit log. */
import { DEMO_ACCOUNT_IDS, demoOwnerEmail } from '@sluice/domain/accounts/demo-account';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/**
 * Whether the account is the demo's, in force or not: by its number and its owner, a row that stays. Its tokens may have been
 * rotated. Index: the primary key of `users`. Another number needs no statement.
 */
export async function isDemoAccount(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<boolean> {
  if (!DEMO_ACCOUNT_IDS.some((each) => each === accountId)) return false;
  const { rows } = await sql`
    select from users
     where account_id = ${accountId} and user_id = ${accountId} and email = ${demoOwnerEmail(accountId)}`.execute(
    database,
  );
  return rows.length > 0;
}
