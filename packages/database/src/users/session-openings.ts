/**
 * The ways into the console. Each has its audit entry in one transaction.
 *
 * The ways are a mailed code, the demo, a token, and the second factor that completes a session. The way by an identity
 * provider is in `provider-openings.ts`. Each gives the session a secret that no session had before.
 */
import { canonicalAddress } from '@sluice/domain/delivery/network-address';
import { toStorableText } from '@sluice/domain/values/storable-text';
import { sql } from 'kysely';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { isDuplicateOf } from '../connection/statement-failure.ts';
import {
  auditedSession,
  type ConsoleSession,
  IS_OPEN,
  type SessionOwner,
  type SessionStanding,
  type SignInWay,
} from './console-sessions.ts';

/** By which call somebody signs in. */
export type SignInCall = Pick<ChangeOrigin, 'ipAddr' | 'userAgent' | 'requestId'>;

const DAYS_MAX = 7;
/** Open at a time by one token: more than a team has browsers that share one. */
const SESSIONS_OF_TOKEN_MAX = 20;
/** Open at a time in the demo from one address: more than a class behind one router. */
const SESSIONS_OF_DEMO_AND_ADDRESS_MAX = 50;
/** By all its visitors, so that many addresses cannot make the table large. */
const SESSIONS_OF_DEMO_MAX = 2_000;
const USER_AGENT_LENGTH_MAX = 512;

export interface NewUserSession {
  readonly userId: number;
  readonly accountId: number;
  readonly sessionHash: Buffer;
  readonly way: 'code' | 'demo';
  /** The sign-in whose code was right; absent in the demo. */
  readonly signInId?: string;
}

/**
 * Uses the code and opens the session. `last_sign_in_at` becomes now, unless a second factor is missing. An invited
 * user, whose address the code has proved, is active from then on.
 *
 * @returns how far the session goes. `used`: the code was used meanwhile. `no_user`: the user or the account is not
 *   active, or an invited user's address became another's meanwhile. `provider_required`: the account requires its
 *   identity provider.
 */
export async function openUserSession(
  database: Database,
  { userId, accountId, sessionHash, way, signInId }: NewUserSession,
  call: SignInCall,
  nowMs: number,
): Promise<SessionStanding | 'used' | 'no_user' | 'provider_required'> {
  try {
    return await database.transaction().execute(async (transaction) => {
      if (signInId !== undefined) {
        const { rows } = await sql`
        update sign_in_codes set used_at = ${new Date(nowMs)}
         where sign_in_id = ${signInId} and used_at is null returning 1`.execute(transaction);
        if (rows.length === 0) return 'used';
      }
      const { rows } = await sql<{
        email: string;
        status: string;
        isEnabled: boolean;
        isRequired: boolean;
        isProviderRequired: boolean;
      }>`
      select u.email, u.status, u.is_two_factor_enabled as "isEnabled", a.is_two_factor_required as "isRequired",
             exists (select from identity_providers p
                      where p.account_id = u.account_id and p.is_required) as "isProviderRequired"
        from users u join accounts a on a.account_id = u.account_id
       where u.account_id = ${accountId} and u.user_id = ${userId} and u.status <> 'deactivated'
         and a.status <> 'closed'
         for no key update of u`.execute(transaction);
      const [user] = rows;
      if (!user) return 'no_user';
      if (way === 'code' && user.isProviderRequired) return 'provider_required';
      if (user.status === 'invited')
        await activateUser(transaction, accountId, userId, call, nowMs);
      const owner = { accountId, userId, credentialId: null };
      const sessionId = await insertSession(transaction, owner, way, sessionHash, null, call);
      if (way === 'demo') await endOldestDemoSessions(transaction, owner, call);
      // Each call of the session sees changes that happen beside this transaction.
      if (way === 'code' && user.isEnabled) return 'needs_code';
      if (way === 'code' && user.isRequired) return 'needs_setup';
      await recordSignIn(transaction, { ...owner, sessionId, name: user.email }, way, call, nowMs);
      return 'complete';
    });
  } catch (error) {
    if (isDuplicateOf(error, 'users_by_email')) return 'no_user';
    throw error;
  }
}

export interface NewTokenSession {
  readonly accountId: number;
  readonly credentialId: number;
  readonly serviceAccountId: number;
  /** SHA-256 of the token. */
  readonly secretHash: Buffer;
  readonly sessionHash: Buffer;
}

/** Past 20 open ones of the token the oldest ends. @returns `two_factors`: the account requires two, and a token is one. `provider_required`: the account requires its identity provider. `no_token`: it was revoked or rotated meanwhile, or it is of a program that acts for a user, who signs in otherwise. */
export async function openTokenSession(
  database: Database,
  { accountId, credentialId, serviceAccountId, secretHash, sessionHash }: NewTokenSession,
  call: SignInCall,
  nowMs: number,
): Promise<'complete' | 'two_factors' | 'provider_required' | 'no_token'> {
  return database.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ name: string; isRequired: boolean; isProviderRequired: boolean }>`
      select c.name, a.is_two_factor_required as "isRequired",
             exists (select from identity_providers p
                      where p.account_id = c.account_id and p.is_required) as "isProviderRequired"
        from api_credentials c join accounts a on a.account_id = c.account_id
       where c.account_id = ${accountId} and c.credential_id = ${credentialId} and c.secret_hash = ${secretHash}
         and c.revoked_at is null and c.for_user_id is null and a.status <> 'closed'
         for no key update of c`.execute(transaction);
    const [token] = rows;
    if (!token) return 'no_token';
    if (token.isRequired) return 'two_factors';
    if (token.isProviderRequired) return 'provider_required';
    const owner = { accountId, userId: null, credentialId };
    const sessionId = await insertSession(
      transaction,
      owner,
      'token',
      sessionHash,
      secretHash,
      call,
    );
    const origin = {
      ...call,
      actor: { type: 'service_account', serviceAccountId },
      credentialId,
      sessionId,
    } as const;
    const change = { objectType: 'console_session', objectName: token.name } as const;
    const audited = auditedSession(owner, 'token');
    for (const objectId of await endOldestSessions(transaction, accountId, credentialId))
      await recordChange(
        transaction,
        accountId,
        origin,
        { ...change, objectId, before: audited, after: null },
        nowMs,
      );
    await recordChange(
      transaction,
      accountId,
      origin,
      { ...change, objectId: sessionId, before: null, after: audited },
      nowMs,
    );
    return 'complete';
  });
}

/** Under the lock of the token's row: one at most, but for the first time after a change of the number. */
async function endOldestSessions(
  transaction: Transaction,
  accountId: number,
  credentialId: number,
): Promise<number[]> {
  const { rows } = await sql<{ sessionId: number }>`
    delete from console_sessions
     where account_id = ${accountId} and credential_id = ${credentialId} and session_id in (
           select s.session_id from console_sessions s
            where s.account_id = ${accountId} and s.credential_id = ${credentialId} and ${IS_OPEN}
            order by s.session_id desc offset ${SESSIONS_OF_TOKEN_MAX})
    returning session_id::int as "sessionId"`.execute(transaction);
  return rows.map(({ sessionId }) => sessionId);
}

/**
 * Of the same address, so that one visitor cannot end the sessions of others. Under the lock of the user's row. Without
 * entries in the audit log: the visitors did not end them.
 */
async function endOldestDemoSessions(
  transaction: Transaction,
  { accountId, userId }: Pick<SessionOwner, 'accountId' | 'userId'>,
  { ipAddr }: SignInCall,
): Promise<void> {
  const isOfAddress = sql`ip_addr is not distinct from ${canonicalAddress(ipAddr ?? '')}`;
  const pastLatest = (condition: ReturnType<typeof sql>, countMax: number) => sql`(
    select session_id from console_sessions
     where account_id = ${accountId} and user_id = ${userId} and way = 'demo' and ${condition}
     order by session_id desc offset ${countMax})`;
  await sql`
    delete from console_sessions where account_id = ${accountId} and user_id = ${userId}
       and (session_id in ${pastLatest(isOfAddress, SESSIONS_OF_DEMO_AND_ADDRESS_MAX)}
            or session_id in ${pastLatest(sql`true`, SESSIONS_OF_DEMO_MAX)})`.execute(transaction);
}

/** Inserts the row of a session. @returns its number, by which its owner ends it. */
export async function insertSession(
  transaction: Transaction,
  { accountId, userId, credentialId }: SessionOwner,
  way: SignInWay,
  sessionHash: Buffer,
  credentialSecretHash: Buffer | null,
  call: SignInCall,
): Promise<number> {
  const userAgent = call.userAgent?.slice(0, USER_AGENT_LENGTH_MAX) ?? null;
  const { rows } = await sql<{ sessionId: number }>`
    insert into console_sessions
      (account_id, user_id, credential_id, credential_secret_hash, session_hash, way, ends_at, ip_addr, user_agent)
    values (${accountId}, ${userId}, ${credentialId}, ${credentialSecretHash}, ${sessionHash}, ${way},
            now() + make_interval(days => ${DAYS_MAX}), ${canonicalAddress(call.ipAddr ?? '')},
            ${userAgent === null ? null : toStorableText(userAgent)})
    returning session_id::int as "sessionId"`.execute(transaction);
  await sql`
    delete from console_sessions
     where account_id = ${accountId} and user_id = ${userId} and session_id in (
           select session_id from console_sessions
            where account_id = ${accountId} and user_id = ${userId} and way = 'demo'
            order by session_id desc offset ${SESSIONS_OF_DEMO_MAX})`.execute(transaction);
  return (rows[0] as (typeof rows)[number]).sessionId;
}

/** Values of a session that go with its cookie. */
export interface NewSessionSecret {
  /** SHA-256 of the cookie. */
  readonly sessionHash: Buffer;
  /** The ID token, encrypted by the cookie. Null: the session has no ID token. */
  readonly idToken: string | null;
}

/**
 * Completes the session, in the transaction that accepts the second factor. The session gets another secret, so the
 * secret before it, which others may know, stops working.
 *
 * @returns false if the session was ended meanwhile.
 */
export async function completeSession(
  transaction: Transaction,
  session: Pick<ConsoleSession, 'accountId' | 'userId' | 'sessionId' | 'name' | 'way' | 'standing'>,
  { sessionHash, idToken }: NewSessionSecret,
  call: SignInCall,
  nowMs: number,
): Promise<boolean> {
  const { accountId, userId, sessionId } = session;
  const { rows } = await sql`
    update console_sessions set session_hash = ${sessionHash}, id_token = ${idToken}, has_second_factor = true
     where account_id = ${accountId} and user_id = ${userId} and session_id = ${sessionId}
    returning 1`.execute(transaction);
  if (rows.length === 0 || userId === null) return false;
  // One that was complete is signed in already.
  if (session.standing !== 'complete')
    await recordSignIn(transaction, { ...session, userId }, session.way, call, nowMs);
  return true;
}

/** Makes an invited user active, who has proved the address. @throws DatabaseError if it is another active user's (`users_by_email`). */
export async function activateUser(
  transaction: Transaction,
  accountId: number,
  userId: number,
  call: SignInCall,
  nowMs: number,
): Promise<void> {
  await sql`
    update users set status = 'active', updated_at = ${new Date(nowMs)}
     where account_id = ${accountId} and user_id = ${userId}`.execute(transaction);
  await recordChange(
    transaction,
    accountId,
    { ...call, actor: { type: 'user', userId } },
    {
      objectType: 'user',
      objectId: userId,
      before: { status: 'invited' },
      after: { status: 'active' },
    },
    nowMs,
  );
}

/** Records that the session is complete. `last_sign_in_at` of the user becomes now. */
export async function recordSignIn(
  transaction: Transaction,
  {
    accountId,
    userId,
    sessionId,
    name,
  }: Pick<ConsoleSession, 'accountId' | 'sessionId' | 'name'> & {
    readonly userId: number;
  },
  way: SignInWay,
  call: SignInCall,
  nowMs: number,
): Promise<void> {
  await sql`
    update users set last_sign_in_at = now()
     where account_id = ${accountId} and user_id = ${userId}`.execute(transaction);
  await recordChange(
    transaction,
    accountId,
    { ...call, actor: { type: 'user', userId }, sessionId },
    {
      objectType: 'console_session',
      objectId: sessionId,
      objectName: name,
      before: null,
      after: auditedSession({ userId, credentialId: null }, way),
    },
    nowMs,
  );
}

/** The owner of the demo's account, while the demo's token is in force. Indexes: primary keys. */
export async function findDemoUser(
  database: DatabaseOrTransaction,
  accountId: number,
  demoTokenHash: Buffer,
): Promise<{ readonly accountId: number; readonly userId: number } | undefined> {
  const { rows } = await sql<{ accountId: number; userId: number }>`
    select a.account_id::int as "accountId", a.owner_user_id as "userId"
      from accounts a
      join api_credentials c on c.account_id = a.account_id
     where a.account_id = ${accountId} and a.owner_user_id is not null and a.status <> 'closed'
       and c.kind = 'service_account' and c.secret_hash = ${demoTokenHash} and c.revoked_at is null`.execute(
    database,
  );
  return rows[0];
}
