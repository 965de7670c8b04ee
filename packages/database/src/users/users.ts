/** The people of an account. */
import type { Role } from '@sluice/domain/accounts/account';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface User {
  readonly userId: number;
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly role: Role;
  readonly status: 'active' | 'invited' | 'deactivated';
  readonly isTwoFactorEnabled: boolean;
  readonly isSso: boolean;
  /** Ascending. */
  readonly environmentIds: readonly number[];
  readonly lastSignInAt: Date | null;
  readonly createdAt: Date;
}

const COLUMNS = sql`
  u.user_id as "userId", u.email, u.first_name as "firstName", u.last_name as "lastName", u.role,
  u.status, u.is_two_factor_enabled as "isTwoFactorEnabled", u.is_sso as "isSso",
  (select coalesce(array_agg(m.environment_id order by m.environment_id), '{}')
     from memberships m
    where m.account_id = u.account_id and m.user_id = u.user_id) as "environmentIds",
  u.last_sign_in_at as "lastSignInAt", u.created_at as "createdAt"`;

/** The first `limit` by id, and how many there are. Indexes: primary keys of `users` and `memberships`. */
export async function listUsers(
  database: DatabaseOrTransaction,
  accountId: number,
  limit: number,
): Promise<{ readonly users: readonly User[]; readonly total: number }> {
  const { rows } = await sql<User & { total: number }>`
    select ${COLUMNS},
           count(*) over ()::int as total
      from users u
     where u.account_id = ${accountId}
     order by u.user_id
     limit ${limit}`.execute(database);
  return { users: rows, total: rows[0]?.total ?? 0 };
}

/** Index: primary keys. */
export async function findUser(
  database: DatabaseOrTransaction,
  accountId: number,
  userId: number,
): Promise<User | undefined> {
  const { rows } = await sql<User>`
    select ${COLUMNS} from users u
     where u.account_id = ${accountId} and u.user_id = ${userId}`.execute(database);
  return rows[0];
}

/**
 * The owner of an email: the active user who has it, else the user who was invited or removed last. A statement without
 * a tenant, since the tenant is the question. Index: `users_by_email_and_account`.
 */
export async function findUserOfEmail(
  database: DatabaseOrTransaction,
  email: string,
): Promise<{ readonly accountId: number; readonly user: User } | undefined> {
  const { rows } = await sql<User & { accountId: number }>`
    select ${COLUMNS}, u.account_id::int as "accountId" from users u
     where lower(u.email) = lower(${email})
     order by (u.status = 'active') desc, u.updated_at desc, u.user_id desc limit 1`.execute(
    database,
  );
  const [row] = rows;
  if (!row) return undefined;
  const { accountId, ...user } = row;
  return { accountId, user };
}
