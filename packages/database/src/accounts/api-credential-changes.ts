/**
 * Makes, rotates and revokes an account's credentials, with their audit entries. Each change and its entry are one
 * transaction. `api-credentials.ts` reads them.
 *
 * Only hashes are kept. Intake and the API remember a key for at most a second, so that a change here is in force
 * within one. Every statement finds its rows by the primary key (account_id, credential_id), unless its comment names
 * another index.
 */
import { CREDENTIAL_COUNT_MAX, type Role } from '@sluice/domain/accounts/account';
import { type RawBuilder, sql } from 'kysely';
import {
  CREDENTIAL_COLUMNS,
  CREDENTIAL_TYPES,
  isInForce,
  type Credential,
  type CredentialKind,
} from './api-credentials.ts';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import type { Database, Transaction } from '../connection/connection.ts';
import { transactOnce } from '../changes/transact-once.ts';

/** A secret as it is kept. */
export interface KeptSecret {
  readonly hash: Buffer;
  readonly hint: string;
}

/** A secret as it is shown to its maker, once. */
export interface ShownSecret extends KeptSecret {
  readonly text: string;
}

export interface MadeCredential {
  readonly credential: Credential;
  readonly secret: ShownSecret;
}

export interface NewCredential {
  readonly kind: CredentialKind;
  readonly name: string;
  /** For every kind but a service account's. */
  readonly environmentId: number | null;
  readonly siteId: string | null;
  /** For a service account's token: of the service account that is made with it. */
  readonly role: Role | null;
  readonly scopes: readonly string[];
  readonly ipAllowlist: readonly string[];
  readonly isReadOnly: boolean;
  readonly expiresAt: Date | null;
  readonly secret: ShownSecret;
  /** The user for whom a program acts (`users/device-logins.ts`): it ends with the rights of the user. */
  readonly forUserId?: number;
  /** Of a program's key: the token that it was made with. */
  readonly withCredentialId?: number;
}

/**
 * Undefined if the account has no such workspace, or it is deleted; `too_many` if the workspace (for tokens,
 * the account) has as many as it may. A service account's token gets a new service account.
 */
export async function createCredential(
  database: Database,
  accountId: number,
  given: NewCredential,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<MadeCredential | 'too_many' | undefined> {
  return transactOnce(database, origin.call, isMade, (transaction) =>
    makeCredential(transaction, accountId, given, origin, nowMs),
  );
}

/** As {@link createCredential}, in a transaction that makes more. */
export async function makeCredential(
  transaction: Transaction,
  accountId: number,
  given: NewCredential,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<MadeCredential | 'too_many' | undefined> {
  const { environmentId } = given;
  if (!(await lockOwner(transaction, accountId, environmentId))) return undefined;
  const count = await countCredentials(transaction, accountId, environmentId, nowMs);
  if (count >= CREDENTIAL_COUNT_MAX) return 'too_many';
  const serviceAccountId =
    given.role === null
      ? null
      : await createServiceAccount(transaction, accountId, given.name, given.role, origin, nowMs);
  const credential = await insertCredential(
    transaction,
    accountId,
    given,
    serviceAccountId,
    origin,
    nowMs,
  );
  return { credential, secret: given.secret };
}

/** Until the transaction ends, no other transaction makes a credential there. False if it is not there, or deleted. */
async function lockOwner(
  transaction: Transaction,
  accountId: number,
  environmentId: number | null,
): Promise<boolean> {
  const owner =
    environmentId === null
      ? sql`accounts where account_id = ${accountId}`
      : sql`environments
             where account_id = ${accountId} and environment_id = ${environmentId} and deleted_at is null`;
  const { rows } = await sql`select from ${owner} for no key update`.execute(transaction);
  return rows.length > 0;
}

/** In force, of a workspace, or with null of the account itself. Index: `api_credentials_in_force`. */
async function countCredentials(
  transaction: Transaction,
  accountId: number,
  environmentId: number | null,
  nowMs: number,
): Promise<number> {
  const isOfOwner =
    environmentId === null ? sql`environment_id is null` : sql`environment_id = ${environmentId}`;
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from api_credentials
     where account_id = ${accountId} and ${isOfOwner} and ${isInForce(nowMs)}`.execute(transaction);
  return rows[0]?.count ?? 0;
}

const isMade = (outcome: MadeCredential | string | undefined): boolean =>
  typeof outcome === 'object';

/** Makes the row and its audit entry; for transactions that make more. */
export async function insertCredential(
  transaction: Transaction,
  accountId: number,
  given: NewCredential,
  serviceAccountId: number | null,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<Credential> {
  const { rows } = await sql<Credential>`
    insert into api_credentials
      (account_id, environment_id, service_account_id, kind, name, site_id, secret_hash, secret_hint, scopes,
       ip_allowlist, is_read_only, is_test, created_by_user_id, for_user_id,
       with_credential_id, expires_at, created_at)
    values
      (${accountId}, ${given.environmentId}, ${serviceAccountId}, ${given.kind}, ${given.name}, ${given.siteId},
       ${given.secret.hash}, ${given.secret.hint}, ${given.scopes}::text[], ${given.ipAllowlist}::text[],
       ${given.isReadOnly}, ${given.kind === 'pipelines'}, ${origin.actor.type === 'user' ? origin.actor.userId : null}, ${given.forUserId ?? null},
       ${given.withCredentialId ?? null}, ${given.expiresAt},
       ${new Date(nowMs)})
    returning ${CREDENTIAL_COLUMNS}`.execute(transaction);
  const credential = rows[0] as Credential;
  await record(transaction, accountId, origin, nowMs, credential, null, audited(credential, '1'));
  return credential;
}

export async function createServiceAccount(
  transaction: Transaction,
  accountId: number,
  name: string,
  role: Role,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<number> {
  const { rows } = await sql<{ serviceAccountId: number }>`
    insert into service_accounts (account_id, name, role, created_at)
    values (${accountId}, ${name}, ${role}, ${new Date(nowMs)})
    returning service_account_id as "serviceAccountId"`.execute(transaction);
  const { serviceAccountId } = rows[0] as { serviceAccountId: number };
  await recordChange(
    transaction,
    accountId,
    origin,
    {
      objectType: 'service_account',
      objectId: serviceAccountId,
      objectName: name,
      before: null,
      after: { name, role, status: 'active' },
    },
    nowMs,
  );
  return serviceAccountId;
}

/** Puts a new secret in place of the old one, which ends. `revoked`: the credential has no secret any more. */
export async function rotateCredential(
  database: Database,
  accountId: number,
  credentialId: number,
  secret: ShownSecret,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<MadeCredential | 'revoked' | undefined> {
  return transactOnce(database, origin.call, isMade, async (transaction) => {
    const before = await lockCredential(transaction, accountId, credentialId);
    if (!before || before.revokedAt !== null) return before && 'revoked';
    const { rows } = await sql<Credential>`
      update api_credentials set secret_hash = ${secret.hash}, secret_hint = ${secret.hint}
       where account_id = ${accountId} and credential_id = ${credentialId}
      returning ${CREDENTIAL_COLUMNS}`.execute(transaction);
    const credential = rows[0] as Credential;
    const states = [audited(before, '1'), audited(credential, '2')] as const;
    await record(transaction, accountId, origin, nowMs, credential, ...states);
    return { credential, secret };
  });
}

/** Takes it out of force for ever. Idempotent. */
export async function revokeCredential(
  database: Database,
  accountId: number,
  credentialId: number,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<Credential | undefined> {
  return database.transaction().execute(async (transaction) => {
    const before = await lockCredential(transaction, accountId, credentialId);
    if (!before || before.revokedAt !== null) return before;
    const { rows } = await sql<Credential>`
      update api_credentials set revoked_at = ${new Date(nowMs)}
       where account_id = ${accountId} and credential_id = ${credentialId}
      returning ${CREDENTIAL_COLUMNS}`.execute(transaction);
    const after = rows[0] as Credential;
    const states = [audited(before, '1'), audited(after, '1')] as const;
    await record(transaction, accountId, origin, nowMs, after, ...states);
    return after;
  });
}

/**
 * Revokes credentials in force, in the transaction that is the reason. Each revocation has an audit entry.
 *
 * @param which - a condition on columns of `api_credentials`.
 * @returns how many there were.
 */
export async function revokeCredentials(
  transaction: Transaction,
  accountId: number,
  which: RawBuilder<unknown>,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<number> {
  const { rows } = await sql<Credential>`
    update api_credentials set revoked_at = ${new Date(nowMs)}
     where account_id = ${accountId} and ${which} and revoked_at is null
       and (expires_at is null or expires_at > now())
    returning ${CREDENTIAL_COLUMNS}`.execute(transaction);
  for (const after of rows) {
    const before = { ...after, revokedAt: null };
    const states = [audited(before, '1'), audited(after, '1')] as const;
    await record(transaction, accountId, origin, nowMs, after, ...states);
  }
  return rows.length;
}

async function lockCredential(
  transaction: Transaction,
  accountId: number,
  credentialId: number,
): Promise<Credential | undefined> {
  const { rows } = await sql<Credential>`
    select ${CREDENTIAL_COLUMNS} from api_credentials
     where account_id = ${accountId} and credential_id = ${credentialId} for update`.execute(
    transaction,
  );
  return rows[0];
}

const record = (
  transaction: Transaction,
  accountId: number,
  origin: ChangeOrigin,
  nowMs: number,
  credential: Credential,
  before: ReturnType<typeof audited> | null,
  after: ReturnType<typeof audited>,
) =>
  recordChange(
    transaction,
    accountId,
    origin,
    {
      objectType: 'api_credential',
      objectId: credential.credentialId,
      objectName: credential.name,
      environmentId: credential.environmentId,
      before,
      after,
    },
    nowMs,
  );

/** `secret` is any text that differs if the secret does; it is not kept. */
const audited = (credential: Credential, secret: string) => ({
  name: credential.name,
  type: CREDENTIAL_TYPES[credential.kind],
  environment_id: credential.environmentId,
  service_account_id: credential.serviceAccountId,
  site_id: credential.siteId,
  secret,
  token_hint: credential.secretHint,
  scopes: credential.scopes,
  ip_allowlist: credential.ipAllowlist,
  read_only: credential.isReadOnly,
  expires_at: credential.expiresAt,
  revoked_at: credential.revokedAt,
});
