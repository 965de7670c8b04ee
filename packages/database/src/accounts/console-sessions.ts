/**
 * Sessions of users in the console. A session is open until it is ended, for 12 hours without use and for 7 days at
 * most, all by Postgres' clock, and as long as its user and its account are active. A session of the demo is open only
 * while the demo's token is in force. A mailed code is one factor, so in an account that requires two it opens no
 * session, and the sessions that it has opened before are over.
 *
 * Each change has its entry of the audit log in one transaction. Index: the primary key, which begins with the account.
 */
import type { Role } from '@sluice/domain/accounts/account';
import { canonicalAddress } from '@sluice/domain/delivery/network-address';
import { toStorableText } from '@sluice/domain/values/storable-text';
import { sql } from 'kysely';
import { takeCalls } from '../changes/call-counts.ts';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';

/** How a user came in. */
export type SignInWay = 'code' | 'demo';

export interface ConsoleSession {
  readonly sessionId: number;
  readonly accountId: number;
  readonly userId: number;
  readonly role: Role;
  readonly email: string;
  readonly way: SignInWay;
  /** Workspaces of the user, deleted ones left out; ascending. */
  readonly environmentIds: readonly number[];
}

const IDLE_HOURS_MAX = 12;
const DAYS_MAX = 7;
/** How often the last use of a session is written, at most. */
const SEEN_INTERVAL_SECONDS = 60;
const USER_AGENT_LENGTH_MAX = 512;
const HOUR_MS = 3_600_000;

/** In a statement whose table of sessions is `s`. */
const IS_OPEN = sql`s.ends_at > now() and s.last_seen_at > now() - make_interval(hours => ${IDLE_HOURS_MAX})`;

/** @param demoTokenHash - SHA-256 of the account token of the demo. */
export async function findConsoleSession(
  database: DatabaseOrTransaction,
  accountId: number,
  sessionHash: Buffer,
  demoTokenHash: Buffer,
): Promise<ConsoleSession | undefined> {
  const { rows } = await sql<ConsoleSession>`
    with seen as (
      update console_sessions set last_seen_at = now()
       where account_id = ${accountId} and session_hash = ${sessionHash}
         and last_seen_at < now() - make_interval(secs => ${SEEN_INTERVAL_SECONDS})
         and last_seen_at > now() - make_interval(hours => ${IDLE_HOURS_MAX}) and ends_at > now())
    select s.session_id::int as "sessionId", s.account_id::int as "accountId", s.user_id as "userId", u.role, u.email, s.way,
           (select coalesce(array_agg(m.environment_id order by m.environment_id), '{}')
              from memberships m
              join environments e using (account_id, environment_id)
             where (m.account_id, m.user_id) = (s.account_id, s.user_id) and e.deleted_at is null) as "environmentIds"
      from console_sessions s
      join users u using (account_id, user_id)
      join accounts a using (account_id)
     where s.account_id = ${accountId} and s.session_hash = ${sessionHash} and ${IS_OPEN}
       and u.status = 'active' and a.status <> 'closed'
       and (s.way = 'demo' or not a.is_two_factor_required)
       and (s.way <> 'demo' or exists (
             select from api_credentials c
              where (c.account_id, c.secret_hash) = (s.account_id, ${demoTokenHash}) and c.revoked_at is null))`.execute(
    database,
  );
  return rows[0];
}

export interface NewConsoleSession {
  readonly userId: number;
  readonly accountId: number;
  readonly sessionHash: Buffer;
  readonly way: SignInWay;
  /** The sign-in whose code was right; absent in the demo. */
  readonly signInId?: string;
}

/**
 * Uses the code and opens the session. `last_sign_in_at` becomes now.
 *
 * @returns `used`: the code was used meanwhile. `no_user`: the user or the account is not active. `one_factor`: the
 *   account requires two.
 */
export async function openConsoleSession(
  database: Database,
  { userId, accountId, sessionHash, way, signInId }: NewConsoleSession,
  call: Pick<ChangeOrigin, 'ipAddr' | 'userAgent' | 'requestId'>,
  nowMs: number,
): Promise<'opened' | 'used' | 'no_user' | 'one_factor'> {
  return database.transaction().execute(async (transaction) => {
    if (signInId !== undefined) {
      const { rows } = await sql`
        update sign_in_codes set used_at = ${new Date(nowMs)}
         where sign_in_id = ${signInId} and used_at is null returning 1`.execute(transaction);
      if (rows.length === 0) return 'used';
    }
    if (way !== 'demo' && (await requiresTwoFactors(transaction, accountId))) return 'one_factor';
    const signedIn = await sql<{ email: string }>`
      update users u set last_sign_in_at = now()
        from accounts a
       where u.account_id = ${accountId} and u.user_id = ${userId} and u.status = 'active'
         and a.account_id = u.account_id and a.status <> 'closed'
      returning u.email`.execute(transaction);
    const email = signedIn.rows[0]?.email;
    if (email === undefined) return 'no_user';
    const userAgent = call.userAgent?.slice(0, USER_AGENT_LENGTH_MAX) ?? null;
    const { rows } = await sql<{ sessionId: number }>`
      insert into console_sessions (account_id, user_id, session_hash, way, ends_at, ip_addr, user_agent)
      values (${accountId}, ${userId}, ${sessionHash}, ${way}, now() + make_interval(days => ${DAYS_MAX}),
              ${canonicalAddress(call.ipAddr ?? '')}, ${userAgent === null ? null : toStorableText(userAgent)})
      returning session_id::int as "sessionId"`.execute(transaction);
    const { sessionId } = rows[0] as (typeof rows)[number];
    await recordChange(
      transaction,
      accountId,
      { ...call, actor: { type: 'user', userId } },
      {
        objectType: 'console_session',
        objectId: sessionId,
        objectName: email,
        before: null,
        after: { user_id: userId, way },
      },
      nowMs,
    );
    return 'opened';
  });
}

/** A change of it beside this transaction is seen by each call of the session. Index: the primary key. */
async function requiresTwoFactors(transaction: Transaction, accountId: number): Promise<boolean> {
  const { rows } = await sql`
    select from accounts where account_id = ${accountId} and is_two_factor_required`.execute(
    transaction,
  );
  return rows.length > 0;
}

/** Whose address it is, if an active user of an open account has it. Before there is a tenant; index: `users_by_email`. */
export async function findUserByEmail(
  database: DatabaseOrTransaction,
  email: string,
): Promise<{ readonly accountId: number; readonly userId: number } | undefined> {
  const { rows } = await sql<{ accountId: number; userId: number }>`
    select u.account_id::int as "accountId", u.user_id as "userId"
      from users u join accounts a on a.account_id = u.account_id
     where lower(u.email) = lower(${email}) and u.status = 'active' and a.status <> 'closed'`.execute(
    database,
  );
  return rows[0];
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

export interface ListedSession {
  readonly sessionId: number;
  readonly way: SignInWay;
  readonly createdAt: Date;
  readonly lastSeenAt: Date;
  readonly endsAt: Date;
  readonly ipAddr: string;
  readonly userAgent: string | null;
}

/** The open sessions of a user, newest first, 100 at most. Index: `console_sessions_by_user`. */
export async function listConsoleSessions(
  database: DatabaseOrTransaction,
  accountId: number,
  userId: number,
): Promise<ListedSession[]> {
  const { rows } = await sql<ListedSession>`
    select s.session_id::int as "sessionId", s.way, s.created_at as "createdAt", s.last_seen_at as "lastSeenAt",
           s.ends_at as "endsAt", s.ip_addr as "ipAddr", s.user_agent as "userAgent"
      from console_sessions s
     where s.account_id = ${accountId} and s.user_id = ${userId} and ${IS_OPEN}
     order by s.session_id desc limit 100`.execute(database);
  return rows;
}

/** Ends a session of the user; false where the user has no such session. Index: `console_sessions_by_user`. */
export async function endConsoleSession(
  database: Database,
  { accountId, userId, sessionId }: Pick<ConsoleSession, 'accountId' | 'userId' | 'sessionId'>,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ way: SignInWay; email: string }>`
      delete from console_sessions s using users u
       where s.account_id = ${accountId} and s.user_id = ${userId} and s.session_id = ${sessionId}
         and (u.account_id, u.user_id) = (s.account_id, s.user_id)
      returning s.way, u.email`.execute(transaction);
    const [ended] = rows;
    if (!ended) return false;
    await recordChange(
      transaction,
      accountId,
      origin,
      {
        objectType: 'console_session',
        objectId: sessionId,
        objectName: ended.email,
        before: { user_id: userId, way: ended.way },
        after: null,
      },
      nowMs,
    );
    return true;
  });
}

/**
 * Records that a wrong code was given for the address of a user: once an hour for each user at most, since anybody
 * could fill the log.
 */
export async function recordFailedSignIn(
  database: Database,
  { accountId, userId }: Pick<ConsoleSession, 'accountId' | 'userId'>,
  call: Pick<ChangeOrigin, 'ipAddr' | 'userAgent' | 'requestId'>,
  nowMs: number,
): Promise<void> {
  const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  await database.transaction().execute(async (transaction) => {
    if ((await takeCalls(transaction, `failed sign-in ${userId}`, 1, hourMs)) > 1) return;
    await recordChange(
      transaction,
      accountId,
      // Whoever it was, it is not known to have been the user.
      { ...call, actor: { type: 'system' } },
      {
        objectType: 'failed_sign_in',
        objectId: userId,
        before: null,
        after: { user_id: userId },
      },
      nowMs,
    );
  });
}

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
