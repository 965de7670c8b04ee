/** A user whom an account_admin can help: with a second factor, and with an open session. */
import { sql } from 'kysely';
import type { ApiUnderTest } from './api-under-test.ts';
import type { Tenant } from './inserted-rows.ts';

/** @param marker - in every text of the row. @returns the id, as it stands in a path. */
export async function insertLockedOutUser(
  { database }: Pick<ApiUnderTest, 'database'>,
  { accountId }: Pick<Tenant, 'accountId'>,
  marker: string,
): Promise<string> {
  const { rows } = await sql<{ userId: number }>`
    with made as (
      insert into users (account_id, email, first_name, last_name, role, status, is_two_factor_enabled)
      values (${accountId}, ${`user@${marker}.example`}, ${marker}, ${marker}, 'member', 'active', true)
      returning account_id, user_id
    ), locked as (
      insert into second_factors (account_id, user_id, secret, confirmed_at)
      select account_id, user_id, ${marker}, now() from made)
    select user_id as "userId" from made`.execute(database);
  return String(rows[0]!.userId);
}

/** Opens a session of each user of the account. */
export const openSessions = (
  { database }: Pick<ApiUnderTest, 'database'>,
  { accountId }: Pick<Tenant, 'accountId'>,
) =>
  sql`
    insert into console_sessions (account_id, session_hash, user_id, way, has_second_factor, ends_at, ip_addr)
    select account_id, sha256(convert_to(email, 'UTF8')), user_id, 'code', true, now() + interval '1 day', ''
      from users where account_id = ${accountId}`.execute(database);
