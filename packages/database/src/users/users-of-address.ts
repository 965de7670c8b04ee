/** Users whom a mailed code signs in, by their address. */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** A user whose session a mailed code may open. */
export interface UserOfAddress {
  readonly accountId: number;
  readonly userId: number;
  readonly accountName: string;
  readonly isInvited: boolean;
}

const INVITATIONS_MAX = 20;

/**
 * The owner of an address, in an open account: the active user who has it, else each user who was invited, the earliest
 * invitation first. It runs before the tenant is known. Indexes: `users_by_email_and_account`, the primary key of
 * `identity_providers`.
 *
 * A mailed code opens no account that requires its identity provider, so such invitations count only if there is no
 * other: otherwise any account of that kind could keep a person out of all accounts that invite them.
 */
export async function findUsersByEmail(
  database: DatabaseOrTransaction,
  email: string,
  accountId?: number,
): Promise<UserOfAddress[]> {
  const { rows } = await sql<UserOfAddress>`
    with found as (
      select u.account_id, u.user_id, a.name, u.status = 'invited' as is_invited, u.created_at,
             rank() over (order by (u.status = 'active') desc,
               exists (select from identity_providers p where p.account_id = u.account_id and p.is_required)) as place
        from users u join accounts a on a.account_id = u.account_id
       where lower(u.email) = lower(${email}) and u.status <> 'deactivated' and a.status <> 'closed')
    select account_id::int as "accountId", user_id as "userId", name as "accountName",
           is_invited as "isInvited"
      from found where place = 1 and account_id = coalesce(${accountId ?? null}, account_id)
     order by created_at, account_id limit ${INVITATIONS_MAX}`.execute(database);
  return rows;
}
