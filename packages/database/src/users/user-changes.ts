/**
 * Changes of an account's users, with their audit entries. Each change and its entry are one transaction.
 *
 *   invited ─first sign-in→ active ─removed→ deactivated ─invited again→ invited
 *
 * An address belongs to one active user. An invitation does not reserve it: another account may invite it, its owner
 * may sign up, and a mailed code opens the account in which the user is active, else one that invited, which the person
 * chooses if there are several. An account does not learn the address's other owner: its invitation is accepted, and no mail is sent. A user who is
 * removed keeps the row, which the audit log and the credentials name, and can be invited again. An account keeps an
 * active account_admin and its owner: a change that would leave it without one is refused, under the lock of the
 * account's row. Indexes: primary keys, and `users_by_email_and_account`.
 */
import type { Role } from '@sluice/domain/accounts/account';
import { sql } from 'kysely';
import { appendToOutbox } from '../changes/outbox.ts';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import { transactOnce } from '../changes/transact-once.ts';
import type { Database, Transaction } from '../connection/connection.ts';
import { endSessionsOfUser } from './console-sessions.ts';
import { endProgramsOfUser } from './programs.ts';
import { findUser, type User } from './users.ts';

export const INVITATION_TOPIC = 'user.invited';

export interface Invitation {
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly role: Role;
  readonly environmentIds: readonly number[];
}

/** `email_taken`: by a user of the account. */
export type UserRefusal =
  | 'email_taken'
  | 'last_admin'
  | 'owner'
  | 'no_workspace'
  | 'no_user'
  | 'no_account';

/** Invites a user, or one who was removed, and lets the mail be sent. */
export async function inviteUser(
  database: Database,
  accountId: number,
  given: Invitation,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<User | UserRefusal> {
  try {
    return await transactOnce(database, origin.call, isChange, async (transaction) => {
      if (!(await lockAccount(transaction, accountId))) return 'no_account';
      const { rows } = await sql<{ userId: number; wasInvited: boolean }>`
        insert into users (account_id, email, first_name, last_name, role, status, created_at, updated_at)
        values (${accountId}, ${given.email}, ${given.firstName}, ${given.lastName}, ${given.role}, 'invited',
                ${new Date(nowMs)}, ${new Date(nowMs)})
        on conflict (lower(email), account_id) do update
          set status = 'invited', role = excluded.role, first_name = excluded.first_name,
              last_name = excluded.last_name, updated_at = excluded.updated_at
          where users.status = 'deactivated'
        returning user_id as "userId"`.execute(transaction);
      const userId = rows[0]?.userId;
      if (userId === undefined) return 'email_taken';
      // Identities of a removed user: the present owner of the address may be another person.
      await sql`
        delete from user_identities where account_id = ${accountId} and user_id = ${userId}`.execute(
        transaction,
      );
      if (!(await replaceMemberships(transaction, accountId, userId, given.environmentIds)))
        throw new Refused('no_workspace');
      const user = await requireUser(transaction, accountId, userId);
      const auditLogId = await record(transaction, accountId, null, user, origin, nowMs);
      await appendToOutbox(
        transaction,
        {
          topic: INVITATION_TOPIC,
          dedupeKey: `${accountId} ${auditLogId}`,
          payload: { account_id: accountId, user_id: userId },
        },
        nowMs,
      );
      return user;
    });
  } catch (error) {
    if (error instanceof Refused) return error.refusal;
    throw error;
  }
}

export interface UserChange {
  readonly role?: Role | undefined;
  readonly environmentIds?: readonly number[] | undefined;
}

/** Each call of the user's sessions obeys the change from then on. */
export async function changeUser(
  database: Database,
  accountId: number,
  userId: number,
  change: UserChange,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<User | UserRefusal> {
  return changeLockedUser(database, accountId, userId, origin, nowMs, async (transaction) => {
    const { role, environmentIds } = change;
    if (role !== undefined)
      await sql`
        update users set role = ${role}, updated_at = ${new Date(nowMs)}
         where account_id = ${accountId} and user_id = ${userId}`.execute(transaction);
    if (environmentIds === undefined) return;
    if (!(await replaceMemberships(transaction, accountId, userId, environmentIds)))
      throw new Refused('no_workspace');
  });
}

/**
 * Ends the user's sessions and programs, and takes the second factor and the workspaces. `owner`: an account's owner is an active user,
 * so another one becomes it first.
 */
export async function removeUser(
  database: Database,
  accountId: number,
  userId: number,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<User | UserRefusal> {
  return changeLockedUser(database, accountId, userId, origin, nowMs, async (transaction) => {
    if (await isOwner(transaction, accountId, userId)) throw new Refused('owner');
    // First, so that a sign-in that runs is waited for, and the session that it opens is seen below.
    await sql`
      update users set status = 'deactivated', is_two_factor_enabled = false, updated_at = ${new Date(nowMs)}
       where account_id = ${accountId} and user_id = ${userId}`.execute(transaction);
    await sql`
      delete from second_factors where account_id = ${accountId} and user_id = ${userId}`.execute(
      transaction,
    );
    await endSessionsOfUser(transaction, accountId, userId);
    await replaceMemberships(transaction, accountId, userId, []);
    // A credential that only fails the check of its user would work again for the next person who is invited by this row.
    await endProgramsOfUser(transaction, { accountId, userId }, origin, nowMs);
  });
}

export interface EndedUse {
  readonly sessionCount: number;
  readonly programCount: number;
}

/**
 * Ends all sessions of a user, with one entry of the audit log, and all programs that the user has let in.
 *
 * @returns how many were open and in force; undefined if there is no such user.
 */
export async function endUserSessions(
  database: Database,
  accountId: number,
  userId: number,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<EndedUse | undefined> {
  return database.transaction().execute(async (transaction) => {
    // A sign-in in progress holds this lock: it is waited for, and the session that it opens is ended too.
    await sql`
      select from users where account_id = ${accountId} and user_id = ${userId}
         for no key update`.execute(transaction);
    const user = await findUser(transaction, accountId, userId);
    if (!user) return undefined;
    const sessionCount = await endSessionsOfUser(transaction, accountId, userId);
    const owner = { accountId, userId };
    const programCount = await endProgramsOfUser(transaction, owner, origin, nowMs);
    if (sessionCount > 0)
      await recordChange(
        transaction,
        accountId,
        origin,
        {
          objectType: 'user',
          objectId: userId,
          objectName: user.email,
          before: { open_sessions: sessionCount },
          after: { open_sessions: 0 },
        },
        nowMs,
      );
    return { sessionCount, programCount };
  });
}

class Refused extends Error {
  readonly refusal: UserRefusal;
  constructor(refusal: UserRefusal) {
    super(refusal);
    this.refusal = refusal;
  }
}

const isChange = (outcome: User | UserRefusal): boolean => typeof outcome === 'object';

/** A refusal undoes everything. */
async function changeLockedUser(
  database: Database,
  accountId: number,
  userId: number,
  origin: ChangeOrigin,
  nowMs: number,
  change: (transaction: Transaction) => Promise<void>,
): Promise<User | UserRefusal> {
  try {
    return await transactOnce(database, origin.call, isChange, async (transaction) => {
      if (!(await lockAccount(transaction, accountId))) return 'no_account';
      const before = await findUser(transaction, accountId, userId);
      if (!before || before.status === 'deactivated') return 'no_user';
      await change(transaction);
      if (isAdmin(before) && !(await hasAdmin(transaction, accountId)))
        throw new Refused('last_admin');
      const after = await requireUser(transaction, accountId, userId);
      await record(transaction, accountId, before, after, origin, nowMs);
      return after;
    });
  } catch (error) {
    if (error instanceof Refused) return error.refusal;
    throw error;
  }
}

const isAdmin = ({ role, status }: User): boolean =>
  role === 'account_admin' && status === 'active';

async function hasAdmin(transaction: Transaction, accountId: number): Promise<boolean> {
  const { rows } = await sql`
    select from users
     where account_id = ${accountId} and role = 'account_admin' and status = 'active' limit 1`.execute(
    transaction,
  );
  return rows.length > 0;
}

async function isOwner(
  transaction: Transaction,
  accountId: number,
  userId: number,
): Promise<boolean> {
  const { rows } = await sql`
    select from accounts where account_id = ${accountId} and owner_user_id = ${userId}`.execute(
    transaction,
  );
  return rows.length > 0;
}

async function lockAccount(transaction: Transaction, accountId: number): Promise<boolean> {
  const { rows } = await sql`
    select from accounts where account_id = ${accountId} and status <> 'closed' for no key update`.execute(
    transaction,
  );
  return rows.length > 0;
}

/** @returns false if one is no workspace of the account. */
async function replaceMemberships(
  transaction: Transaction,
  accountId: number,
  userId: number,
  environmentIds: readonly number[],
): Promise<boolean> {
  const wanted = [...new Set(environmentIds)];
  await sql`
    delete from memberships
     where account_id = ${accountId} and user_id = ${userId} and not environment_id = any(${wanted}::int[])`.execute(
    transaction,
  );
  const { rows } = await sql<{ count: number }>`
    with known as (
      select environment_id from environments
       where account_id = ${accountId} and environment_id = any(${wanted}::int[]) and deleted_at is null
    ), added as (
      insert into memberships (account_id, user_id, environment_id)
      select ${accountId}, ${userId}, environment_id from known
      on conflict do nothing)
    select count(*)::int as count from known`.execute(transaction);
  return rows[0]?.count === wanted.length;
}

async function requireUser(
  transaction: Transaction,
  accountId: number,
  userId: number,
): Promise<User> {
  const user = await findUser(transaction, accountId, userId);
  if (!user) throw new Error(`user ${userId} of account ${accountId} is gone under its lock`);
  return user;
}

/** If a removed user is invited again, the entry is of a new user. */
async function record(
  transaction: Transaction,
  accountId: number,
  before: User | null,
  after: User,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<number | undefined> {
  const { userId, email } = after;
  const change = { objectType: 'user', objectId: userId, objectName: email } as const;
  return recordChange(
    transaction,
    accountId,
    origin,
    { ...change, before: before && auditedUser(before), after: auditedUser(after) },
    nowMs,
  );
}

const auditedUser = (user: User) => ({
  email: user.email,
  first_name: user.firstName,
  last_name: user.lastName,
  role: user.role,
  status: user.status,
  two_factor_enabled: user.isTwoFactorEnabled,
  environment_ids: [...user.environmentIds],
});
