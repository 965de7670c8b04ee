/**
 * Signups: from an address to an account, by a code that was mailed to it.
 *
 *   started ─mailed→ code ─right code→ used, the account is there
 *                        └ wrong five times, expired, or a newer code was mailed: dead
 *
 * An attempt is counted before the code is compared, in one statement, so that simultaneous guesses cannot exceed
 * five. The code is used in the transaction that makes the account, so that there is one account. Only the newest
 * code of an address is valid. Before a signup is done there is no tenant: these statements find by address, indexes
 * `signups_by_email` and `signups_by_ip`.
 */
import type { Role } from '@sluice/domain/accounts/account';
import { sql } from 'kysely';
import { auditedAccount } from './account-changes.ts';
import { findAccount } from './accounts.ts';
import {
  createServiceAccount,
  insertCredential,
  type ShownSecret,
} from './api-credential-changes.ts';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { appendToOutbox } from '../changes/outbox.ts';
import { isDuplicateOf } from '../connection/statement-failure.ts';
import { type HeldCall, transactOnce } from '../changes/transact-once.ts';

export const SIGNUP_TOPIC = 'signup.mail';

export interface SignupLimits {
  readonly startsPerHourAndIp: number;
  readonly codesPerHourAndEmail: number;
  readonly failuresPerDayAndEmail: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const ATTEMPTS_MAX = 5;

/**
 * Starts a signup; the mail goes by the outbox. If the address has had its codes no mail is sent, and the outcome does
 * not show it: `too_many` is about the IP address only.
 *
 * @param given.ip - the network that starts are counted by (`domain/src/delivery/network-address.ts`, `callerNetwork`).
 */
export async function startSignup(
  database: Database,
  { email, ip }: { readonly email: string; readonly ip: string },
  limits: SignupLimits,
  nowMs: number,
  call?: HeldCall,
): Promise<'started' | 'too_many'> {
  const since = (durationMs: number) => new Date(nowMs - durationMs);
  const isStarted = (outcome: 'started' | 'too_many'): boolean => outcome === 'started';
  return transactOnce(database, call, isStarted, async (transaction) => {
    // One start at a time for each IP address, then for each mail address, so that the counts are exact.
    await sql`select pg_advisory_xact_lock(hashtextextended(${ip}, 1))`.execute(transaction);
    await sql`select pg_advisory_xact_lock(hashtextextended(lower(${email}), 2))`.execute(
      transaction,
    );
    const { rows } = await sql<{ ofIp: number; ofEmail: number; failures: number }>`
      select (select count(*)::int from signups where ip = ${ip} and started_at > ${since(HOUR_MS)}) as "ofIp",
             (count(*) filter (where started_at > ${since(HOUR_MS)}))::int as "ofEmail",
             coalesce(sum(attempt_count) filter (where started_at > ${since(DAY_MS)}), 0)::int as failures
        from signups where lower(email) = lower(${email})`.execute(transaction);
    const counts = rows[0] as (typeof rows)[number];
    if (counts.ofIp >= limits.startsPerHourAndIp) return 'too_many';
    const isSilent =
      counts.ofEmail >= limits.codesPerHourAndEmail ||
      counts.failures >= limits.failuresPerDayAndEmail;
    // Without the mail address it counts for the IP address, but not for anybody's codes.
    const made = await sql<{ signupId: string }>`
      insert into signups (email, ip, started_at)
      values (${isSilent ? '' : email}, ${ip}, ${new Date(nowMs)})
      returning signup_id as "signupId"`.execute(transaction);
    const signupId = made.rows[0]?.signupId as string;
    // Also if no mail will be sent, so that the same work is done for every address.
    const entry = { topic: SIGNUP_TOPIC, dedupeKey: signupId, payload: { signup_id: signupId } };
    await appendToOutbox(transaction, entry, nowMs);
    return 'started';
  });
}

export interface StartedSignup {
  readonly email: string;
  readonly startedAt: Date;
  /** An active user has this address. */
  readonly isKnown: boolean;
}

export async function findSignup(
  database: DatabaseOrTransaction,
  signupId: string,
): Promise<StartedSignup | undefined> {
  const { rows } = await sql<StartedSignup>`
    select email, started_at as "startedAt",
           exists (select from users u where lower(u.email) = lower(s.email) and u.status = 'active') as "isKnown"
      from signups s where signup_id = ${signupId}`.execute(database);
  return rows[0];
}

/** Gives the signup its code, in place of one that could not be mailed. */
export async function keepSignupCode(
  database: DatabaseOrTransaction,
  signupId: string,
  codeHmac: Buffer,
  expiresAtMs: number,
): Promise<void> {
  await sql`
    update signups set code_hmac = ${codeHmac}, code_expires_at = ${new Date(expiresAtMs)}
     where signup_id = ${signupId} and used_at is null`.execute(database);
}

/**
 * Forgets the person and the address behind an old signup, and that it was mailed: no statement needs these any more,
 * whether or not the signup made an account. Looks at the `limit` oldest, by the primary key, which is in the order of
 * the starts.
 */
export async function clearSignups(
  database: DatabaseOrTransaction,
  startedBeforeMs: number,
  limit: number,
): Promise<void> {
  await sql`
    with gone as (
      delete from signups where signup_id in (
        select signup_id from (
          select signup_id, started_at from signups order by signup_id limit ${limit}) oldest
         where started_at < ${new Date(startedBeforeMs)})
      returning signup_id
    )
    delete from outbox using gone
     where topic = ${SIGNUP_TOPIC} and dedupe_key = gone.signup_id::text`.execute(database);
}

/** Counts one more attempt at the newest code of the address; undefined if no code may be tried. */
export async function countSignupAttempt(
  database: DatabaseOrTransaction,
  email: string,
  nowMs: number,
): Promise<{ readonly signupId: string; readonly codeHmac: Buffer } | undefined> {
  const { rows } = await sql<{ signupId: string; codeHmac: Buffer }>`
    update signups set attempt_count = attempt_count + 1
     where signup_id = (select signup_id from signups
                         where lower(email) = lower(${email}) and code_hmac is not null
                         order by signup_id desc limit 1)
       and attempt_count < ${ATTEMPTS_MAX} and used_at is null and code_expires_at > ${new Date(nowMs)}
    returning signup_id as "signupId", code_hmac as "codeHmac"`.execute(database);
  return rows[0];
}

export interface NewAccount {
  readonly signupId: string;
  readonly email: string;
  readonly companyName: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly dataCenter: 'us' | 'eu';
  /** The catalogue's, for the audit log. */
  readonly currency: string;
  readonly isSandbox: boolean;
  readonly token: ShownSecret;
  readonly tokenScopes: readonly string[];
  readonly webhookSigningKey: string;
}

/** Role of the person who signs up, and of the token that is made for them. */
const OWNER_ROLE: Role = 'account_admin';

export interface CreatedAccount {
  /** Of its owner and of its token. */
  readonly role: Role;
  readonly accountId: number;
  readonly environmentId: number;
  readonly userId: number;
  readonly serviceAccountId: number;
  readonly tokenId: number;
  readonly token: ShownSecret;
}

/**
 * Uses the code and makes account, workspace, owner, service account and token, in one transaction. `used`: another
 * person used the code meanwhile. `email_taken`: the address has an account.
 */
export async function createAccount(
  database: Database,
  given: NewAccount,
  origin: Omit<ChangeOrigin, 'actor'>,
  nowMs: number,
): Promise<CreatedAccount | 'used' | 'email_taken'> {
  const isMade = (outcome: CreatedAccount | 'used'): boolean => outcome !== 'used';
  try {
    return await transactOnce(database, origin.call, isMade, async (transaction) => {
      const { rows } = await sql`
        update signups set used_at = ${new Date(nowMs)}
         where signup_id = ${given.signupId} and used_at is null returning 1`.execute(transaction);
      if (rows.length === 0) return 'used';
      return insertAccount(transaction, given, origin, nowMs);
    });
  } catch (error) {
    if (isDuplicateOf(error, 'users_by_email')) return 'email_taken';
    throw error;
  }
}

/** @throws a unique violation of `users_by_email`. */
async function insertAccount(
  transaction: Transaction,
  given: NewAccount,
  call: Omit<ChangeOrigin, 'actor'>,
  nowMs: number,
): Promise<CreatedAccount> {
  const now = new Date(nowMs);
  const made = await sql<{ accountId: number; environmentId: number; userId: number }>`
    with account as (
      insert into accounts
        (name, data_center, currency, is_sandbox, billing_email, created_at, updated_at)
      values (${given.companyName}, ${given.dataCenter}, ${given.currency}, ${given.isSandbox}, ${given.email},
              ${now}, ${now})
      returning account_id
    ), environment as (
      insert into environments (account_id, name, webhook_signing_key, created_at)
      select account_id, ${given.companyName}, ${given.webhookSigningKey}, ${now} from account
      returning environment_id
    ), owner as (
      insert into users (account_id, email, first_name, last_name, role, status, created_at, updated_at)
      select account_id, ${given.email}, ${given.firstName}, ${given.lastName}, ${OWNER_ROLE}, 'active', ${now}, ${now}
        from account
      returning user_id
    )
    select account_id::int as "accountId", environment_id as "environmentId", user_id as "userId"
      from account, environment, owner`.execute(transaction);
  const { accountId, environmentId, userId } = made.rows[0] as (typeof made.rows)[number];
  await sql`
    insert into memberships (account_id, user_id, environment_id)
    values (${accountId}, ${userId}, ${environmentId})`.execute(transaction);
  await sql`
    update accounts set owner_user_id = ${userId} where account_id = ${accountId}`.execute(
    transaction,
  );

  const origin: ChangeOrigin = { ...call, actor: { type: 'user', userId } };
  const created = (change: Parameters<typeof recordChange>[3]) =>
    recordChange(transaction, accountId, origin, change, nowMs);
  const account = await findAccount(transaction, accountId);
  await created({
    objectType: 'account',
    objectId: accountId,
    objectName: given.companyName,
    before: null,
    after: account ? auditedAccount(account) : {},
  });
  await created({
    objectType: 'environment',
    objectId: environmentId,
    objectName: given.companyName,
    environmentId,
    before: null,
    after: { name: given.companyName, webhook_signing_key: 'made', phone_identifies: false },
  });
  await created({
    objectType: 'user',
    objectId: userId,
    objectName: given.email,
    before: null,
    after: {
      email: given.email,
      first_name: given.firstName,
      last_name: given.lastName,
      role: OWNER_ROLE,
      status: 'active',
      two_factor_enabled: false,
      environment_ids: [environmentId],
    },
  });
  const name = 'Made at signup';
  const serviceAccountId = await createServiceAccount(
    transaction,
    accountId,
    name,
    OWNER_ROLE,
    origin,
    nowMs,
  );
  const credential = await insertCredential(
    transaction,
    accountId,
    {
      kind: 'service_account',
      name,
      environmentId: null,
      siteId: null,
      role: null,
      scopes: given.tokenScopes,
      ipAllowlist: [],
      isReadOnly: false,
      expiresAt: null,
      secret: given.token,
    },
    serviceAccountId,
    origin,
    nowMs,
  );
  const { credentialId: tokenId } = credential;
  return {
    accountId,
    environmentId,
    userId,
    serviceAccountId,
    role: OWNER_ROLE,
    tokenId,
    token: given.token,
  };
}
