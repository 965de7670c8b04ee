/**
 * The second factor of a user: the secret of an authenticator app, and ten recovery codes in its place.
 *
 *   absent ─setup→ being set up ─right code→ confirmed ─removed→ absent
 *                     └ set up again: another secret
 *
 * A code is used once: the step of the latest one is kept, and one statement moves it on. Index: the primary keys.
 *
 * A change of a factor and sessions locks the user's row, then the factor, then the sessions, as a sign-in and the
 * removal of a user do (`session-openings.ts`, `user-changes.ts`): one order of locks prevents deadlocks.
 */
import { sql } from 'kysely';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import {
  type ConsoleSession,
  endSessionsOfUser,
  forgetFactorOfSessions,
} from './console-sessions.ts';
import { endProgramsOfUser } from './programs.ts';
import { completeSession, type NewSessionSecret } from './session-openings.ts';

interface UserKey {
  readonly accountId: number;
  readonly userId: number;
}

export interface SecondFactor {
  /** Encrypted. */
  readonly secret: string;
  readonly isConfirmed: boolean;
  /** Recovery codes that are not used. */
  readonly recoveryCodeCount: number;
}

/** The given second factor: the step of the app's code, or the hash of a recovery code. */
export type GivenFactor = { readonly step: number } | { readonly codeHash: Buffer };

export async function findSecondFactor(
  database: DatabaseOrTransaction,
  { accountId, userId }: UserKey,
): Promise<SecondFactor | undefined> {
  const { rows } = await sql<SecondFactor>`
    select secret, confirmed_at is not null as "isConfirmed",
           (select count(*)::int from recovery_codes r
             where (r.account_id, r.user_id) = (f.account_id, f.user_id) and used_at is null) as "recoveryCodeCount"
      from second_factors f where account_id = ${accountId} and user_id = ${userId}`.execute(
    database,
  );
  return rows[0];
}

/** @returns false if one is confirmed: it is removed first. */
export async function startSecondFactor(
  database: DatabaseOrTransaction,
  { accountId, userId }: UserKey,
  encryptedSecret: string,
): Promise<boolean> {
  const { rows } = await sql`
    insert into second_factors (account_id, user_id, secret)
    values (${accountId}, ${userId}, ${encryptedSecret})
    on conflict (account_id, user_id) do update set secret = excluded.secret
      where second_factors.confirmed_at is null
    returning 1`.execute(database);
  return rows.length > 0;
}

/** The session of a user, and the new values that go with its cookie from now on. */
export interface SessionChange extends NewSessionSecret {
  readonly session: ConsoleSession & { readonly userId: number };
}

/**
 * Confirms the factor in setup and completes the session.
 *
 * @param given.secret - as it was read: another setup meanwhile has another.
 * @returns `changed`: it was set up again, confirmed, or the session ended meanwhile.
 */
export async function confirmSecondFactor(
  database: Database,
  { session, ...next }: SessionChange,
  given: {
    readonly secret: string;
    readonly step: number;
    readonly codeHashes: readonly Buffer[];
  },
  origin: ChangeOrigin,
  nowMs: number,
): Promise<'confirmed' | 'changed'> {
  const { accountId, userId } = session;
  return unlessChanged(database, async (transaction) => {
    await lockUser(transaction, session);
    const { rows } = await sql`
      update second_factors set confirmed_at = ${new Date(nowMs)}, last_step = ${given.step}
       where account_id = ${accountId} and user_id = ${userId} and secret = ${given.secret}
         and confirmed_at is null
      returning 1`.execute(transaction);
    if (rows.length === 0) return 'changed';
    await insertRecoveryCodes(transaction, session, given.codeHashes);
    if (!(await completeSession(transaction, session, next, origin, nowMs))) return 'changed';
    await recordEnabled(transaction, session, true, origin, nowMs);
    return 'confirmed';
  });
}

/** Uses the factor and completes the session. `used`: it is no good any more, or the session ended meanwhile. */
export async function passSecondFactor(
  database: Database,
  { session, ...next }: SessionChange,
  given: GivenFactor,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<'passed' | 'used'> {
  const outcome = await unlessChanged(database, async (transaction) => {
    await lockUser(transaction, session);
    if (!(await useFactor(transaction, session, given, nowMs))) return 'changed';
    const isOpen = await completeSession(transaction, session, next, origin, nowMs);
    return isOpen ? 'passed' : 'changed';
  });
  return outcome === 'changed' ? 'used' : outcome;
}

/** Gives the user ten other recovery codes for a code of the app. */
export async function replaceRecoveryCodes(
  database: Database,
  user: UserKey,
  given: GivenFactor,
  codeHashes: readonly Buffer[],
  origin: ChangeOrigin,
  nowMs: number,
): Promise<'replaced' | 'changed'> {
  const { accountId, userId } = user;
  return unlessChanged(database, async (transaction) => {
    if (!(await useFactor(transaction, user, given, nowMs))) return 'changed';
    await sql`
      delete from recovery_codes where account_id = ${accountId} and user_id = ${userId}`.execute(
      transaction,
    );
    await insertRecoveryCodes(transaction, user, codeHashes);
    await recordChange(
      transaction,
      accountId,
      origin,
      {
        objectType: 'user',
        objectId: userId,
        before: { recovery_codes: 'before' },
        after: { recovery_codes: 'after' },
      },
      nowMs,
    );
    return 'replaced';
  });
}

/**
 * Removes the own factor for a code of it, and ends the user's sessions that were waiting for one. `required`: the
 * account does not allow a user without one.
 */
export async function giveUpSecondFactor(
  database: Database,
  user: UserKey,
  given: GivenFactor,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<'removed' | 'required' | 'changed'> {
  return unlessChanged(database, async (transaction) => {
    const { rows } = await sql`
      select from accounts where account_id = ${user.accountId} and is_two_factor_required`.execute(
      transaction,
    );
    if (rows.length > 0) return 'required';
    await lockUser(transaction, user);
    if (!(await useFactor(transaction, user, given, nowMs))) return 'changed';
    await deleteFactor(transaction, user);
    await forgetFactorOfSessions(transaction, user);
    await recordEnabled(transaction, user, false, origin, nowMs);
    return 'removed';
  });
}

/**
 * Takes the factor from a user who has lost it, and ends the user's sessions and programs. If the account requires a
 * factor, the next mailed code leads to a new setup.
 *
 * @param secret - given: only while it is still this one, and also one that is being set up and opens no session. Such
 *   a factor is deleted without an end of sessions and without an entry.
 * @returns false if the user has no factor.
 */
export async function resetSecondFactor(
  database: Database,
  user: UserKey,
  origin: ChangeOrigin,
  nowMs: number,
  secret?: string,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    await lockUser(transaction, user);
    const deleted = await deleteFactor(transaction, user, secret);
    if (deleted !== 'confirmed') return deleted === 'being_set_up';
    await endSessionsOfUser(transaction, user.accountId, user.userId);
    await endProgramsOfUser(transaction, user, origin, nowMs);
    await recordEnabled(transaction, user, false, origin, nowMs);
    return true;
  });
}

/**
 * Whether a session of the user may have had the secret of this token: the user let its program in, or made or changed the
 * token, or another token that did. As far back as the audit log goes. Index: `audit_logs_by_object`.
 */
export async function isTokenOfUser(
  database: DatabaseOrTransaction,
  { accountId, userId }: UserKey,
  credentialId: number,
): Promise<boolean> {
  const { rows } = await sql`
    with recursive makers as (
      select ${credentialId}::bigint as credential_id
      union
      select l.credential_id from makers m join audit_logs l
          on l.account_id = ${accountId} and l.object_type = 'api_credential' and l.object_id = m.credential_id::text
       where l.credential_id is not null)
    select from makers m
     where exists (select from api_credentials c
                    where c.account_id = ${accountId} and c.credential_id = m.credential_id and c.for_user_id = ${userId})
        or exists (select from audit_logs l
                    where l.account_id = ${accountId} and l.object_type = 'api_credential'
                      and l.object_id = m.credential_id::text and l.user_id = ${userId})
     limit 1`.execute(database);
  return rows.length > 0;
}

async function lockUser(transaction: Transaction, { accountId, userId }: UserKey): Promise<void> {
  await sql`
    select from users where account_id = ${accountId} and user_id = ${userId}
       for no key update`.execute(transaction);
}

/** @returns the state of the deleted factor. `none`: there is no such factor. */
async function deleteFactor(
  transaction: Transaction,
  { accountId, userId }: UserKey,
  secret?: string,
): Promise<'confirmed' | 'being_set_up' | 'none'> {
  const { rows } = await sql<{ wasConfirmed: boolean }>`
    delete from second_factors where account_id = ${accountId} and user_id = ${userId}
       and case when ${secret ?? null}::text is null then confirmed_at is not null
                else secret = ${secret ?? null} end
    returning confirmed_at is not null as "wasConfirmed"`.execute(transaction);
  const [deleted] = rows;
  if (!deleted) return 'none';
  return deleted.wasConfirmed ? 'confirmed' : 'being_set_up';
}

/** One statement, so that only one of two calls with the same code uses it. */
async function useFactor(
  transaction: Transaction,
  { accountId, userId }: UserKey,
  given: GivenFactor,
  nowMs: number,
): Promise<boolean> {
  const { rows } =
    'step' in given
      ? await sql`
          update second_factors set last_step = ${given.step}
           where account_id = ${accountId} and user_id = ${userId} and confirmed_at is not null
             and last_step < ${given.step}
          returning 1`.execute(transaction)
      : await sql`
          update recovery_codes set used_at = ${new Date(nowMs)}
           where account_id = ${accountId} and user_id = ${userId} and code_hash = ${given.codeHash}
             and used_at is null
          returning 1`.execute(transaction);
  return rows.length > 0;
}

async function insertRecoveryCodes(
  transaction: Transaction,
  { accountId, userId }: UserKey,
  codeHashes: readonly Buffer[],
): Promise<void> {
  await sql`
    insert into recovery_codes (account_id, user_id, code_hash)
    select ${accountId}, ${userId}, code_hash from unnest(${codeHashes}::bytea[]) as code_hash`.execute(
    transaction,
  );
}

async function recordEnabled(
  transaction: Transaction,
  { accountId, userId }: UserKey,
  isEnabled: boolean,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<void> {
  const { rows } = await sql<{ email: string; wasEnabled: boolean }>`
    with before as (
      select is_two_factor_enabled from users where account_id = ${accountId} and user_id = ${userId})
    update users u set is_two_factor_enabled = ${isEnabled}, updated_at = ${new Date(nowMs)} from before
     where u.account_id = ${accountId} and u.user_id = ${userId}
    returning u.email, before.is_two_factor_enabled as "wasEnabled"`.execute(transaction);
  await recordChange(
    transaction,
    accountId,
    origin,
    {
      objectType: 'user',
      objectId: userId,
      objectName: rows[0]?.email ?? null,
      before: { two_factor_enabled: rows[0]?.wasEnabled },
      after: { two_factor_enabled: isEnabled },
    },
    nowMs,
  );
}

class Changed extends Error {}

/** Undoes everything if the work finds that something was changed meanwhile. */
async function unlessChanged<Outcome>(
  database: Database,
  work: (transaction: Transaction) => Promise<Outcome | 'changed'>,
): Promise<Outcome | 'changed'> {
  try {
    return await database.transaction().execute(async (transaction) => {
      const outcome = await work(transaction);
      if (outcome === 'changed') throw new Changed();
      return outcome;
    });
  } catch (error) {
    if (error instanceof Changed) return 'changed';
    throw error;
  }
}
