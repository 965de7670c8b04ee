/**
 * Codes with which a user signs in to the console.
 *
 *   started ─mailed→ code ─right code→ used, the session is open
 *                        └ wrong five times, expired, or a newer code was mailed: dead
 *
 * As with signups (`signups.ts`), an attempt is counted before the code is compared, in one statement, and only the
 * newest code of an address is valid. The code is used in the transaction that opens the session
 * (`console-sessions.ts`). Before that there is no tenant: these statements find by address, indexes
 * `sign_in_codes_by_email` and `sign_in_codes_by_ip`.
 */
import { sql } from 'kysely';
import { appendToOutbox } from '../changes/outbox.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';
import type { SignupLimits } from '../accounts/signups.ts';

export const SIGN_IN_TOPIC = 'sign_in.mail';

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const ATTEMPTS_MAX = 5;

/**
 * Starts a sign-in; the mail goes by the outbox. An address that is no user's, or that has had its codes, gets no mail,
 * and the outcome does not show it: `too_many` is about the IP address only.
 *
 * @param given.ip - the network that starts are counted by (`domain/src/delivery/network-address.ts`, `callerNetwork`).
 */
export async function startSignIn(
  database: Database,
  { email, ip }: { readonly email: string; readonly ip: string },
  limits: SignupLimits,
  nowMs: number,
): Promise<'started' | 'too_many'> {
  const since = (durationMs: number) => new Date(nowMs - durationMs);
  return database.transaction().execute(async (transaction) => {
    // One start at a time for each IP address, then for each mail address, so that the counts are exact.
    await sql`select pg_advisory_xact_lock(hashtextextended(${ip}, 3))`.execute(transaction);
    await sql`select pg_advisory_xact_lock(hashtextextended(lower(${email}), 4))`.execute(
      transaction,
    );
    const { rows } = await sql<{ ofIp: number; ofEmail: number; failures: number }>`
      select (select count(*)::int from sign_in_codes
               where ip = ${ip} and started_at > ${since(HOUR_MS)}) as "ofIp",
             (count(*) filter (where started_at > ${since(HOUR_MS)}))::int as "ofEmail",
             coalesce(sum(attempt_count) filter (where started_at > ${since(DAY_MS)} and used_at is null), 0)::int as failures
        from sign_in_codes where lower(email) = lower(${email})`.execute(transaction);
    const counts = rows[0] as (typeof rows)[number];
    if (counts.ofIp >= limits.startsPerHourAndIp) return 'too_many';
    const isSilent =
      counts.ofEmail >= limits.codesPerHourAndEmail ||
      counts.failures >= limits.failuresPerDayAndEmail;
    // Without the mail address it counts for the IP address, but not for anybody's codes.
    const made = await sql<{ signInId: string }>`
      insert into sign_in_codes (email, ip, started_at)
      values (${isSilent ? '' : email}, ${ip}, ${new Date(nowMs)})
      returning sign_in_id as "signInId"`.execute(transaction);
    const signInId = made.rows[0]?.signInId as string;
    // Also if no mail will be sent, so that the same work is done for every address.
    const entry = {
      topic: SIGN_IN_TOPIC,
      dedupeKey: signInId,
      payload: { sign_in_id: signInId },
    };
    await appendToOutbox(transaction, entry, nowMs);
    return 'started';
  });
}

export interface StartedSignIn {
  readonly email: string;
  readonly startedAt: Date;
  /** An active or invited user of an account that is open, and does not require its identity provider, has this address. */
  readonly isKnown: boolean;
}

export async function findSignIn(
  database: DatabaseOrTransaction,
  signInId: string,
): Promise<StartedSignIn | undefined> {
  const { rows } = await sql<StartedSignIn>`
    select email, started_at as "startedAt",
           exists (select from users u join accounts a on a.account_id = u.account_id
                    where lower(u.email) = lower(s.email) and u.status <> 'deactivated' and a.status <> 'closed'
                      and not exists (select from identity_providers p
                                       where p.account_id = u.account_id and p.is_required)) as "isKnown"
      from sign_in_codes s where sign_in_id = ${signInId}`.execute(database);
  return rows[0];
}

/** Gives the sign-in its code, in place of one that could not be mailed. */
export async function keepSignInCode(
  database: DatabaseOrTransaction,
  signInId: string,
  codeHmac: Buffer,
  expiresAtMs: number,
): Promise<void> {
  await sql`
    update sign_in_codes set code_hmac = ${codeHmac}, code_expires_at = ${new Date(expiresAtMs)}
     where sign_in_id = ${signInId} and used_at is null`.execute(database);
}

/** Counts one more attempt at the newest code of the address; undefined if no code may be tried. */
export async function countSignInAttempt(
  database: DatabaseOrTransaction,
  email: string,
  nowMs: number,
): Promise<{ readonly signInId: string; readonly codeHmac: Buffer } | undefined> {
  const { rows } = await sql<{ signInId: string; codeHmac: Buffer }>`
    update sign_in_codes set attempt_count = attempt_count + 1
     where sign_in_id = (select sign_in_id from sign_in_codes
                          where lower(email) = lower(${email}) and code_hmac is not null
                          order by sign_in_id desc limit 1)
       and attempt_count < ${ATTEMPTS_MAX} and used_at is null and code_expires_at > ${new Date(nowMs)}
    returning sign_in_id as "signInId", code_hmac as "codeHmac"`.execute(database);
  return rows[0];
}

/** Forgets sign-ins that were started so long ago, with their mails. Looks at the `limit` oldest, by the primary key. */
export async function clearSignIns(
  database: DatabaseOrTransaction,
  startedBeforeMs: number,
  limit: number,
): Promise<void> {
  await sql`
    with gone as (
      delete from sign_in_codes where sign_in_id in (
        select sign_in_id from (
          select sign_in_id, started_at from sign_in_codes order by sign_in_id limit ${limit}) oldest
         where started_at < ${new Date(startedBeforeMs)})
      returning sign_in_id
    )
    delete from outbox using gone
     where topic = ${SIGN_IN_TOPIC} and dedupe_key = gone.sign_in_id::text`.execute(database);
}
