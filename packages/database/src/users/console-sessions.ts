/**
 * Sessions in the console. A session is open for 12 hours without use and for 7 days at most, all by Postgres' clock,
 * while its account and its owner are active, and until it is ended. Its owner is a user, or a token of the account,
 * and then it ends also with the secret that opened it. A session of the demo needs the demo's token in force.
 *
 * A mailed code is one factor. If the user has a second one, or the account requires one, the session is incomplete for
 * ten minutes from the code, or until the factor is given (`session-openings.ts`). Each call checks the standing again.
 * So every change of the requirement ends the sessions with one factor: otherwise an ended one could be complete again
 * later. A token is one factor: it opens no session if two are required. A sign-in by the account's identity provider
 * counts as one factor, or as two if the account has set so. If the account requires its provider, codes and tokens
 * open no session. Each change has its entry of the audit log in one transaction. Index: the primary key, which begins
 * with the account.
 */
import type { Role } from '@sluice/domain/accounts/account';
import { sql } from 'kysely';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';

/** How its owner came in. */
export type SignInWay = 'code' | 'demo' | 'token' | 'provider';

/** An incomplete session only opens the way to its second factor: a code of it, or its setup. */
export type SessionStanding = 'complete' | 'needs_code' | 'needs_setup';

/** The owner of a session: a user or a token, and null for the other. */
export interface SessionOwner {
  readonly accountId: number;
  readonly userId: number | null;
  readonly credentialId: number | null;
}

export interface ConsoleSession extends SessionOwner {
  readonly sessionId: number;
  readonly role: Role;
  /** The email of the user, or the display name of the token. */
  readonly name: string;
  readonly way: SignInWay;
  readonly standing: SessionStanding;
  /**
   * Workspaces of the user, and all of the account for a token of an account_admin, who may make keys of them; deleted ones
   * left out; ascending.
   */
  readonly environmentIds: readonly number[];
  /** Of a token; null for a user. */
  readonly serviceAccountId: number | null;
  readonly isReadOnly: boolean;
  readonly scopes: readonly string[];
  /** CIDR blocks. Empty: any address. */
  readonly ipAllowlist: readonly string[];
  /** Of the token; null if it has no end, and for a user. */
  readonly expiresAt: Date | null;
}

const IDLE_HOURS_MAX = 12;
/** How long a mailed code leaves to give the second factor, as long as the code itself was good. */
const INCOMPLETE_MINUTES_MAX = 10;
/** How often the last use of a session is written, at most. */
const SEEN_INTERVAL_SECONDS = 60;

/** In a statement whose table of sessions is `s`. */
export const IS_OPEN = sql`s.ends_at > now() and s.last_seen_at > now() - make_interval(hours => ${IDLE_HOURS_MAX})`;

/** In a statement whose table of sessions is `s`: it was opened by a provider that counts as two factors. */
const HAS_TWO_BY_PROVIDER = sql`
  (s.way = 'provider' and exists (
     select from identity_providers p where p.account_id = s.account_id and p.counts_as_two_factors))`;

/** In a statement whose table of sessions is `s`: the account does not require another way. */
const IS_ALLOWED_WAY = sql`
  (s.way in ('provider', 'demo') or not exists (
     select from identity_providers p where p.account_id = s.account_id and p.is_required))`;

/** In a statement with the tables `s`, `u` and `a`. */
const STANDING = sql`
  case when s.way in ('demo', 'token') or s.has_second_factor or ${HAS_TWO_BY_PROVIDER} then 'complete'
       when u.is_two_factor_enabled then 'needs_code'
       when a.is_two_factor_required then 'needs_setup'
       else 'complete' end`;

/** In a statement with the tables `s`, `u` and `a`. */
const IS_IN_FORCE = sql`
  (${IS_ALLOWED_WAY} and (${STANDING} = 'complete' or s.created_at > now() - make_interval(mins => ${INCOMPLETE_MINUTES_MAX})))`;

/**
 * The open session of a call.
 *
 * @param demoTokenHash - SHA-256 of the account token of the demo.
 * @param isUse - true if the call keeps the session open. False for a call that a page makes by itself: a page that
 *   stays open would hold its session for days.
 */
export async function findConsoleSession(
  database: DatabaseOrTransaction,
  accountId: number,
  sessionHash: Buffer,
  demoTokenHash: Buffer,
  isUse: boolean,
): Promise<ConsoleSession | undefined> {
  const { rows } = await sql<ConsoleSession>`
    with found as materialized (
    select s.session_id::int as "sessionId", s.account_id::int as "accountId", s.user_id as "userId",
           s.credential_id::int as "credentialId", coalesce(u.role, t.role) as role, coalesce(u.email, c.name) as name,
           s.way, ${STANDING} as standing, t.service_account_id as "serviceAccountId",
           coalesce(c.is_read_only, false) as "isReadOnly", coalesce(c.scopes, '{}') as scopes,
           coalesce(c.ip_allowlist, '{}') as "ipAllowlist", c.expires_at as "expiresAt",
           (select coalesce(array_agg(e.environment_id order by e.environment_id), '{}')
              from environments e
             where e.account_id = s.account_id and e.deleted_at is null
               and (s.user_id is null and t.role = 'account_admin' or exists (
                     select from memberships m
                      where (m.account_id, m.user_id, m.environment_id) = (s.account_id, s.user_id, e.environment_id)))
           ) as "environmentIds"
      from console_sessions s
      join accounts a on a.account_id = s.account_id
      left join users u on (u.account_id, u.user_id) = (s.account_id, s.user_id) and u.status = 'active'
      left join api_credentials c
        on (c.account_id, c.credential_id, c.secret_hash) = (s.account_id, s.credential_id, s.credential_secret_hash)
       and c.revoked_at is null and (c.expires_at is null or c.expires_at > now())
       and not a.is_two_factor_required
      left join service_accounts t
        on (t.account_id, t.service_account_id) = (c.account_id, c.service_account_id)
     where s.account_id = ${accountId} and s.session_hash = ${sessionHash} and ${IS_OPEN} and a.status <> 'closed'
       and coalesce(u.user_id, t.service_account_id) is not null
       and ${IS_IN_FORCE}
       and (s.way <> 'demo' or exists (
             select from api_credentials d
              where (d.account_id, d.secret_hash) = (s.account_id, ${demoTokenHash}) and d.revoked_at is null))
    ), seen as (
      update console_sessions set last_seen_at = now()
       where account_id = ${accountId} and session_hash = ${sessionHash}
         and ${isUse}::boolean and last_seen_at < now() - make_interval(secs => ${SEEN_INTERVAL_SECONDS})
         and exists (select from found))
    select * from found`.execute(database);
  return rows[0];
}

export interface ListedSession {
  readonly sessionId: number;
  readonly way: SignInWay;
  readonly createdAt: Date;
  readonly lastSeenAt: Date;
  readonly endsAt: Date;
  readonly ipAddr: string;
  readonly userAgent: string | null;
}

/** Of a statement whose table of sessions is `s`. */
const isOf = ({ accountId, userId, credentialId }: SessionOwner) => sql`
  s.account_id = ${accountId} and (s.user_id = ${userId} or s.credential_id = ${credentialId})`;

/** Of a statement whose table of sessions is `s`. Visitors of the demo share its user, so each has only their own session. */
const isSeenBy = ({ way, sessionId }: Pick<ConsoleSession, 'way' | 'sessionId'>) => sql`
  (${way}::text <> 'demo' or s.session_id = ${sessionId})`;

/**
 * The open sessions of the user or the token of a session, newest first, 100 at most. Indexes: `console_sessions_by_user`,
 * `console_sessions_by_credential`.
 */
export async function listConsoleSessions(
  database: DatabaseOrTransaction,
  session: SessionOwner & Pick<ConsoleSession, 'way' | 'sessionId'>,
): Promise<ListedSession[]> {
  const { rows } = await sql<ListedSession>`
    select s.session_id::int as "sessionId", s.way, s.created_at as "createdAt", s.last_seen_at as "lastSeenAt",
           s.ends_at as "endsAt", s.ip_addr as "ipAddr", s.user_agent as "userAgent"
      from console_sessions s
     where ${isOf(session)} and ${isSeenBy(session)} and ${IS_OPEN}
     order by s.session_id desc limit 100`.execute(database);
  return rows;
}

/** Ends a session of the owner; false if there is no such session. Indexes: as {@link listConsoleSessions}. */
export async function endConsoleSession(
  database: Database,
  owner: SessionOwner & Pick<ConsoleSession, 'sessionId' | 'name'>,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ way: SignInWay }>`
      delete from console_sessions s
       where ${isOf(owner)} and s.session_id = ${owner.sessionId} returning s.way`.execute(
      transaction,
    );
    const [ended] = rows;
    if (!ended) return false;
    const { accountId, sessionId, name } = owner;
    await recordChange(
      transaction,
      accountId,
      origin,
      {
        objectType: 'console_session',
        objectId: sessionId,
        objectName: name,
        before: auditedSession(owner, ended.way),
        after: null,
      },
      nowMs,
    );
    return true;
  });
}

/** The stored ID token of a session by an identity provider; null if it has no ID token. Index: the primary key. */
export async function findIdToken(
  database: DatabaseOrTransaction,
  accountId: number,
  sessionHash: Buffer,
): Promise<string | null> {
  const { rows } = await sql<{ idToken: string | null }>`
    select id_token as "idToken" from console_sessions
     where account_id = ${accountId} and session_hash = ${sessionHash}`.execute(database);
  return rows[0]?.idToken ?? null;
}

/**
 * Ends all sessions of a user, in the transaction that is the reason, which has its own entry. If the user must have no
 * session afterwards, the caller locks the user's row before: a sign-in in progress holds that lock, and its session
 * would be missed. Index: `console_sessions_by_user`.
 *
 * @returns the number of sessions that were open.
 */
export async function endSessionsOfUser(
  transaction: DatabaseOrTransaction,
  accountId: number,
  userId: number,
): Promise<number> {
  const { rows } = await sql<{ isOpen: boolean }>`
    delete from console_sessions s using users u join accounts a on a.account_id = u.account_id
     where s.account_id = ${accountId} and s.user_id = ${userId}
       and (u.account_id, u.user_id) = (s.account_id, s.user_id)
    returning ${IS_OPEN} and ${IS_IN_FORCE} as "isOpen"`.execute(transaction);
  return rows.filter(({ isOpen }) => isOpen).length;
}

/**
 * The user has no second factor any more: ends the sessions that waited for it, and makes the others sessions with one
 * factor. In the transaction that is the reason, which has locked the user's row. Index: `console_sessions_by_user`.
 */
export async function forgetFactorOfSessions(
  transaction: DatabaseOrTransaction,
  { accountId, userId }: { readonly accountId: number; readonly userId: number },
): Promise<void> {
  await sql`
    with ended as (
      delete from console_sessions s
       where s.account_id = ${accountId} and s.user_id = ${userId} and s.way in ('code', 'provider')
         and not s.has_second_factor and not ${HAS_TWO_BY_PROVIDER})
    update console_sessions set has_second_factor = false
     where account_id = ${accountId} and user_id = ${userId} and has_second_factor`.execute(
    transaction,
  );
}

/** As the audit log keeps it. */
export const auditedSession = (
  { userId, credentialId }: Pick<SessionOwner, 'userId' | 'credentialId'>,
  way: SignInWay,
) => ({
  way,
  ...(userId !== null && { user_id: userId }),
  ...(credentialId !== null && { credential_id: credentialId }),
});

/** Deletes sessions that are over, `limit` at most. Index: `console_sessions_by_end`. */
export async function clearConsoleSessions(
  database: DatabaseOrTransaction,
  limit: number,
): Promise<void> {
  await sql`
    delete from console_sessions s using (
      select account_id, session_hash from console_sessions
       where ends_at < now() order by ends_at limit ${limit}) over
     where s.account_id = over.account_id and s.session_hash = over.session_hash`.execute(database);
}
