/**
 * Programs that a user lets in (RFC 8628).
 *
 *   started ─the user types the code→ approved ─the program asks again→ its credentials are made, once
 *      │                           └→ denied
 *      └ ten minutes: over
 *
 * The credentials are made when the program asks, so that no secret is kept in between, and by the user's rights at that moment.
 * They are of a user (`for_user_id`): they end once the user is removed, leaves the workspace, or has another role,
 * and they end with the user's sessions if all are ended (`programs.ts`).
 * Before a user has decided there is no tenant: these statements find by the primary key and by the unique index of codes.
 */
import type { Role } from '@sluice/domain/accounts/account';
import { capabilitiesOf } from '@sluice/domain/accounts/capabilities';
import { canonicalAddress } from '@sluice/domain/delivery/network-address';
import { sql } from 'kysely';
import {
  makeCredential,
  type NewCredential,
  type ShownSecret,
} from '../accounts/api-credential-changes.ts';
import type { ChangeOrigin } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { makeRoomForProgram } from './programs.ts';

export const DEVICE_LOGIN_MINUTES_MAX = 10;
export const DEVICE_POLL_SECONDS = 5;
/** How much longer a program waits that asked too soon (RFC 8628 §3.5). */
const SLOWER_SECONDS = 5;
const CREDENTIAL_DAYS_MAX = 90;

const IS_OPEN = sql`started_at > now() - make_interval(mins => ${DEVICE_LOGIN_MINUTES_MAX})`;

export interface NewDeviceLogin {
  readonly deviceHash: Buffer;
  readonly codeHash: Buffer;
  /** The name of the program's machine. */
  readonly clientName: string;
  readonly ipAddr: string;
}

/** @returns false if another program has the code: draw another. */
export async function startDeviceLogin(
  database: DatabaseOrTransaction,
  { deviceHash, codeHash, clientName, ipAddr }: NewDeviceLogin,
): Promise<boolean> {
  const { rows } = await sql`
    insert into device_logins (device_hash, code_hash, client_name, ip_addr, interval_seconds)
    values (${deviceHash}, ${codeHash}, ${clientName}, ${canonicalAddress(ipAddr)}, ${DEVICE_POLL_SECONDS})
    on conflict do nothing returning 1`.execute(database);
  return rows.length > 0;
}

export interface WaitingDevice {
  readonly clientName: string;
  readonly ipAddr: string | null;
  readonly startedAt: Date;
}

/** The program that waits with this code; undefined if it is unknown, over, or decided. */
export async function findWaitingDevice(
  database: DatabaseOrTransaction,
  codeHash: Buffer,
): Promise<WaitingDevice | undefined> {
  const { rows } = await sql<WaitingDevice>`
    select client_name as "clientName", ip_addr as "ipAddr", started_at as "startedAt" from device_logins
     where code_hash = ${codeHash} and is_approved is null and ${IS_OPEN}`.execute(database);
  return rows[0];
}

export interface DeviceDecision {
  readonly accountId: number;
  readonly userId: number;
  /** A workspace of the user, or null. */
  readonly environmentId: number | null;
  readonly isApproved: boolean;
  /** In which the user decides. */
  readonly sessionId: number;
}

/** The first decision stands. @returns false if the code is unknown, over, or decided. */
export async function decideDeviceLogin(
  database: DatabaseOrTransaction,
  codeHash: Buffer,
  { accountId, userId, environmentId, isApproved, sessionId }: DeviceDecision,
): Promise<boolean> {
  const { rows } = await sql`
    update device_logins
       set account_id = ${accountId}, user_id = ${userId}, environment_id = ${environmentId}, is_approved = ${isApproved},
           session_id = ${sessionId}
     where code_hash = ${codeHash} and is_approved is null and ${IS_OPEN} returning 1`.execute(
    database,
  );
  return rows.length > 0;
}

export interface DeviceCredentials {
  readonly accountId: number;
  readonly environmentId: number | null;
  readonly role: Role;
  /** The user whom the program acts for. */
  readonly email: string;
  readonly token: string;
  /** Of the workspace, if the user chose one. */
  readonly key: string | null;
  readonly isKeyReadOnly: boolean;
  readonly expiresAt: Date;
}

export type DevicePoll =
  /** @property intervalSeconds - to wait before asking again. */
  | { readonly outcome: 'pending' | 'too_soon'; readonly intervalSeconds: number }
  | { readonly outcome: 'denied' | 'over' | 'too_many' }
  | { readonly outcome: 'approved'; readonly credentials: DeviceCredentials };

interface LockedLogin {
  readonly clientName: string;
  readonly isTooSoon: boolean;
  readonly intervalSeconds: number;
  readonly accountId: number | null;
  readonly userId: number | null;
  readonly environmentId: number | null;
  readonly isApproved: boolean | null;
  readonly sessionId: number | null;
}

/**
 * The state of the program's login. Once it is approved, the credentials are made, and the login is over.
 *
 * @param newSecrets - draws the token and the key.
 */
export async function pollDeviceLogin(
  database: Database,
  deviceHash: Buffer,
  newSecrets: (isSandbox: boolean) => { readonly token: ShownSecret; readonly key: ShownSecret },
  call: Pick<ChangeOrigin, 'ipAddr' | 'userAgent' | 'requestId'>,
  nowMs: number,
): Promise<DevicePoll> {
  try {
    return await database
      .transaction()
      .execute((transaction) => pollIn(transaction, deviceHash, newSecrets, call, nowMs));
  } catch (error) {
    if (error instanceof CredentialsRefused) return { outcome: error.outcome };
    throw error;
  }
}

async function pollIn(
  transaction: Transaction,
  ...[deviceHash, newSecrets, call, nowMs]: PollArguments
): Promise<DevicePoll> {
  const lockedAccountId = await lockOwnersOf(transaction, deviceHash);
  const { rows } = await sql<LockedLogin>`
      select client_name as "clientName", interval_seconds as "intervalSeconds", account_id::int as "accountId",
             user_id as "userId", environment_id as "environmentId", is_approved as "isApproved", session_id::int as "sessionId",
             coalesce(polled_at > now() - make_interval(secs => interval_seconds), false) as "isTooSoon"
        from device_logins where device_hash = ${deviceHash} and ${IS_OPEN} for update`.execute(
    transaction,
  );
  const [login] = rows;
  if (!login) return { outcome: 'over' };
  if (login.isTooSoon) {
    const intervalSeconds = login.intervalSeconds + SLOWER_SECONDS;
    await sql`
        update device_logins set polled_at = now(), interval_seconds = ${intervalSeconds}
         where device_hash = ${deviceHash}`.execute(transaction);
    return { outcome: 'too_soon', intervalSeconds };
  }
  const { accountId, userId } = login;
  // Decided since the lock: the next question gets it.
  if (login.isApproved === null || accountId !== lockedAccountId) {
    await sql`
        update device_logins set polled_at = now() where device_hash = ${deviceHash}`.execute(
      transaction,
    );
    return { outcome: 'pending', intervalSeconds: login.intervalSeconds };
  }
  await sql`delete from device_logins where device_hash = ${deviceHash}`.execute(transaction);
  if (!login.isApproved || accountId === null || userId === null) return { outcome: 'denied' };
  return makeCredentials(
    transaction,
    { ...login, accountId, userId },
    newSecrets,
    { ...call, actor: { type: 'user', userId }, sessionId: login.sessionId },
    nowMs,
  );
}

/**
 * Locks the workspace and the account of a login that a user has decided, in the order of locks (`../../README.md`).
 *
 * @returns the account; undefined if no user has decided yet.
 */
async function lockOwnersOf(
  transaction: Transaction,
  deviceHash: Buffer,
): Promise<number | undefined> {
  const { rows } = await sql<{ accountId: number | null; environmentId: number | null }>`
    select account_id::int as "accountId", environment_id as "environmentId"
      from device_logins where device_hash = ${deviceHash}`.execute(transaction);
  const { accountId = null, environmentId = null } = rows[0] ?? {};
  if (accountId === null) return undefined;
  if (environmentId !== null)
    await sql`
      select from environments
       where account_id = ${accountId} and environment_id = ${environmentId} for no key update`.execute(
      transaction,
    );
  await sql`select from accounts where account_id = ${accountId} for no key update`.execute(
    transaction,
  );
  return accountId;
}

type PollArguments =
  Parameters<typeof pollDeviceLogin> extends [unknown, ...infer Rest] ? Rest : never;

/** Deletes logins that are over, `limit` at most. Index: `device_logins_by_start`. */
export async function clearDeviceLogins(
  database: DatabaseOrTransaction,
  limit: number,
): Promise<void> {
  await sql`
    delete from device_logins l using (
      select device_hash from device_logins where not ${IS_OPEN} order by started_at limit ${limit}) over
     where l.device_hash = over.device_hash`.execute(database);
}

/** Rolls the transaction back. The program's next question gets the same answer. */
class CredentialsRefused extends Error {
  readonly outcome: 'denied' | 'too_many';

  constructor(outcome: 'denied' | 'too_many') {
    super(outcome);
    this.outcome = outcome;
  }
}

interface ActingUser {
  readonly email: string;
  readonly role: Role;
  readonly isSandbox: boolean;
  readonly isInWorkspace: boolean;
  /** Of the credentials. */
  readonly expiresAt: Date;
}

async function makeCredentials(
  transaction: Transaction,
  login: LockedLogin & { readonly accountId: number; readonly userId: number },
  newSecrets: Parameters<typeof pollDeviceLogin>[2],
  origin: ChangeOrigin,
  nowMs: number,
): Promise<DevicePoll> {
  const { accountId, userId, environmentId } = login;
  const { rows } = await sql<ActingUser>`
    select u.email, u.role, a.is_sandbox as "isSandbox",
           now() + make_interval(days => ${CREDENTIAL_DAYS_MAX}) as "expiresAt",
           exists (select from memberships m where m.account_id = u.account_id and m.user_id = u.user_id
                      and m.environment_id = ${environmentId}) as "isInWorkspace"
      from users u join accounts a on a.account_id = u.account_id
     where u.account_id = ${accountId} and u.user_id = ${userId} and u.status = 'active'
       and a.status <> 'closed'`.execute(transaction);
  const [user] = rows;
  if (!user || (environmentId !== null && !user.isInWorkspace)) return { outcome: 'denied' };
  const { role, email, isSandbox, expiresAt } = user;
  const { token, key } = newSecrets(isSandbox);
  const isKeyReadOnly = !capabilitiesOf(role).includes('workspace.manage');
  await makeRoomForProgram(transaction, { accountId, userId }, origin, nowMs);
  const make = async (
    given: Pick<
      NewCredential,
      'kind' | 'role' | 'secret' | 'environmentId' | 'isReadOnly' | 'withCredentialId'
    >,
  ): Promise<number> => {
    const made = await makeCredential(
      transaction,
      accountId,
      {
        ...given,
        name: `sluice login on ${login.clientName}`,
        siteId: null,
        scopes: [],
        ipAllowlist: [],
        expiresAt,
        forUserId: userId,
      },
      origin,
      nowMs,
    );
    // One without the other would be left over.
    if (made === 'too_many') throw new CredentialsRefused('too_many');
    if (!made) throw new CredentialsRefused('denied');
    return made.credential.credentialId;
  };
  const ofAccount = { environmentId: null, role, isReadOnly: false };
  const tokenId = await make({ ...ofAccount, kind: 'service_account', secret: token });
  if (environmentId !== null)
    await make({
      ...{ kind: 'app', environmentId, role: null, isReadOnly: isKeyReadOnly, secret: key },
      withCredentialId: tokenId,
    });
  return {
    outcome: 'approved',
    credentials: {
      ...{ accountId, environmentId, role, email, expiresAt, isKeyReadOnly },
      token: token.text,
      key: environmentId === null ? null : key.text,
    },
  };
}
