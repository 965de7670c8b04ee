/**
 * Codes with which a user signs in to the console.
 *
 *   started ─mailed→ code ─right code→ used, the session is open
 *                        └ wrong five times in its browser, or expired: dead
 *
 * A code is bound to the browser that asked for it, by a cookie, so another caller's wrong tries spend no code. As with
 * signups (`signups.ts`), an attempt is counted before the code is compared, in one statement. The code is used in the
 * transaction that opens the session (`console-sessions.ts`). The operator's code (`sluice users code`) is bound to no
 * browser, and is too long to be guessed. Before that there is no tenant: these statements find by address and by
 * browser, indexes `sign_in_codes_by_email`, `sign_in_codes_by_browser` and `sign_in_codes_by_ip`.
 */
import { sql } from 'kysely';
import { appendToOutbox } from '../changes/outbox.ts';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';

export const SIGN_IN_TOPIC = 'sign_in.mail';

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const ATTEMPTS_MAX = 5;

/** Browsers that have signed in with the address before, and all the others, are counted apart. */
export interface SignInLimits {
  readonly startsPerHourAndIp: number;
  /** Mailed codes. */
  readonly perHour: { readonly ofEmail: number; readonly ofEmailAndIp: number };
  /** Wrong tries, at codes that were not used. */
  readonly failuresPerDay: { readonly ofEmail: number; readonly ofEmailAndIp: number };
}

export interface SignInStart {
  readonly email: string;
  /** The network that starts are counted by (`domain/src/delivery/network-address.ts`, `callerNetwork`). */
  readonly ip: string;
  /** SHA-256 of the new cookie of the browser. */
  readonly browserHash: Buffer;
  /** Of the cookie that it takes the place of. */
  readonly earlierBrowserHash: Buffer;
  /** The browser has signed in with the address before. */
  readonly isKnownBrowser: boolean;
}

/**
 * Starts a sign-in; the mail goes by the outbox. An address that is no user's, or that has had its codes, gets no mail.
 * The outcome does not show it: `too_many` is about the IP address only.
 */
export async function startSignIn(
  database: Database,
  { email, ip, browserHash, earlierBrowserHash, isKnownBrowser }: SignInStart,
  { startsPerHourAndIp, perHour, failuresPerDay }: SignInLimits,
  nowMs: number,
): Promise<'started' | 'too_many'> {
  const since = (durationMs: number) => new Date(nowMs - durationMs);
  return database.transaction().execute(async (transaction) => {
    // One start at a time for each IP address, then for each mail address, so that the counts are exact.
    await sql`select pg_advisory_xact_lock(hashtextextended(${ip}, 3))`.execute(transaction);
    await sql`select pg_advisory_xact_lock(hashtextextended(lower(${email}), 4))`.execute(
      transaction,
    );
    const isInHour = sql`started_at > ${since(HOUR_MS)}`;
    const isFailed = sql`started_at > ${since(DAY_MS)} and used_at is null`;
    const { rows } = await sql<{
      startsOfIp: number;
      ofEmail: number;
      ofEmailAndIp: number;
      failures: number;
      failuresOfIp: number;
    }>`
      select (select count(*)::int from sign_in_codes where ip = ${ip} and ${isInHour}) as "startsOfIp",
             (count(*) filter (where ${isInHour}))::int as "ofEmail",
             (count(*) filter (where ${isInHour} and ip = ${ip}))::int as "ofEmailAndIp",
             coalesce(sum(attempt_count) filter (where ${isFailed}), 0)::int as failures,
             coalesce(sum(attempt_count) filter (where ${isFailed} and ip = ${ip}), 0)::int as "failuresOfIp"
        from sign_in_codes
       where lower(email) = lower(${email}) and is_known_browser = ${isKnownBrowser}
         and browser_hash is not null`.execute(transaction);
    const counts = rows[0] as (typeof rows)[number];
    if (counts.startsOfIp >= startsPerHourAndIp) return 'too_many';
    const isSilent =
      counts.ofEmail >= perHour.ofEmail ||
      counts.ofEmailAndIp >= perHour.ofEmailAndIp ||
      counts.failures >= failuresPerDay.ofEmail ||
      counts.failuresOfIp >= failuresPerDay.ofEmailAndIp;
    // Without the mail address it counts for the IP address, but not for anybody's codes. No cookie leads to it.
    const boundTo = isSilent ? sql`sha256(gen_random_uuid()::text::bytea)` : sql`${browserHash}`;
    const made = await sql<{ signInId: string }>`
      insert into sign_in_codes (email, ip, started_at, browser_hash, is_known_browser)
      values (${isSilent ? '' : email}, ${ip}, ${new Date(nowMs)}, ${boundTo}, ${isKnownBrowser})
      returning sign_in_id as "signInId"`.execute(transaction);
    const signInId = made.rows[0]?.signInId as string;
    // Also if no mail will be sent, so that the same work is done for every address.
    const entry = {
      topic: SIGN_IN_TOPIC,
      dedupeKey: signInId,
      payload: { sign_in_id: signInId },
    };
    await appendToOutbox(transaction, entry, nowMs);
    // No mail follows, so the code of the mail before stays good in this browser.
    if (isSilent)
      await sql`
        update sign_in_codes set browser_hash = ${browserHash}
         where browser_hash = ${earlierBrowserHash} and lower(email) = lower(${email})
           and used_at is null`.execute(transaction);
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

/** Takes an attempt back: the code was right, and the person has yet to choose the account. */
export async function uncountSignInAttempt(
  database: DatabaseOrTransaction,
  signInId: string,
): Promise<void> {
  await sql`
    update sign_in_codes set attempt_count = greatest(attempt_count - 1, 0)
     where sign_in_id = ${signInId} and browser_hash is not null`.execute(database);
}

/** Counts one more attempt at the code of the browser; undefined if no code may be tried in it for the address. */
export async function countSignInAttempt(
  database: DatabaseOrTransaction,
  { email, browserHash }: Pick<SignInStart, 'email' | 'browserHash'>,
  nowMs: number,
): Promise<{ readonly signInId: string; readonly codeHmac: Buffer } | undefined> {
  const { rows } = await sql<{ signInId: string; codeHmac: Buffer }>`
    update sign_in_codes set attempt_count = attempt_count + 1
     where browser_hash = ${browserHash} and lower(email) = lower(${email}) and code_hmac is not null
       and attempt_count < ${ATTEMPTS_MAX} and used_at is null and code_expires_at > ${new Date(nowMs)}
    returning sign_in_id as "signInId", code_hmac as "codeHmac"`.execute(database);
  return rows[0];
}

/**
 * Keeps a code that the operator gives to a user, in place of a mail. The audit log has an entry.
 *
 * @param given.codeHash - SHA-256 of the code, which is too long to be guessed.
 */
export async function keepOperatorCode(
  database: Database,
  given: {
    readonly accountId: number;
    readonly userId: number;
    readonly email: string;
    readonly codeHash: Buffer;
    readonly expiresAtMs: number;
  },
  origin: ChangeOrigin,
  nowMs: number,
): Promise<void> {
  const { accountId, userId, email, codeHash, expiresAtMs } = given;
  await database.transaction().execute(async (transaction) => {
    await sql`
      insert into sign_in_codes (email, ip, started_at, code_hmac, code_expires_at)
      values (${email}, 'operator', ${new Date(nowMs)}, ${codeHash}, ${new Date(expiresAtMs)})`.execute(
      transaction,
    );
    await recordChange(
      transaction,
      accountId,
      origin,
      {
        objectType: 'user',
        objectId: userId,
        objectName: email,
        before: { sign_in_code: null },
        after: { sign_in_code: 'made' },
      },
      nowMs,
    );
  });
}

/** The sign-in of the operator's code; undefined if the code is wrong, used or expired. */
export async function findOperatorSignIn(
  database: DatabaseOrTransaction,
  { email, codeHash }: { readonly email: string; readonly codeHash: Buffer },
  nowMs: number,
): Promise<string | undefined> {
  const { rows } = await sql<{ signInId: string }>`
    select sign_in_id as "signInId" from sign_in_codes
     where lower(email) = lower(${email}) and browser_hash is null and code_hmac = ${codeHash}
       and used_at is null and code_expires_at > ${new Date(nowMs)}`.execute(database);
  return rows[0]?.signInId;
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
