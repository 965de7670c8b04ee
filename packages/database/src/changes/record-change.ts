/**
 * Writes the audit log: `recordChange`, called in the transaction that makes the change, so that
 * neither is there without the other.
 *
 * Each account's entries are a chain: numbered without a gap, each with the hash of the one before.
 * The account's row of `audit_chains` is locked from the first entry to the end of the transaction.
 * So call it last, after the rows that change are locked (`../README.md`, the order of locks). A transaction that writes
 * for several accounts does so in the order of their ids.
 *
 * The hash is made here, not in SQL: `verify` and the reader of an export can make it again from the entry as the API
 * shows it. Finding: the primary key of `audit_chains`.
 *
 * Before: `domain/src/accounts/audit-change.ts`. Read side: `audit-log-reads.ts`.
 */
import { createHash } from 'node:crypto';
import {
  auditAction,
  auditHashText,
  diffAttributes,
  type AuditActorType,
  type HashedAuditEntry,
  type PortalActor,
} from '@sluice/domain/accounts/audit-change';
import type { AuditObjectType, AuditState } from '@sluice/domain/accounts/audit-registry';
import { AppError } from '@sluice/domain/values/errors';
import { canonicalAddress } from '@sluice/domain/delivery/network-address';
import { toStorableText } from '@sluice/domain/values/storable-text';
import { sql } from 'kysely';
import type { Transaction } from '../connection/connection.ts';
import { isDemoAccount } from './demo-account.ts';
import type { HeldCall } from './transact-once.ts';

/** The actor of a change, and its call. */
export interface ChangeOrigin {
  readonly actor:
    | { readonly type: 'user'; readonly userId: number }
    /** A program; null if its credential belongs to no service account. */
    | { readonly type: 'service_account'; readonly serviceAccountId: number | null }
    /** An engineer of a customer, by a link to the portal. */
    | ({ readonly type: 'portal' } & PortalActor)
    /** The service itself. */
    | { readonly type: 'system' };
  /** The `api_credentials` row that the call was made with. */
  readonly credentialId?: number | null;
  /** The session of the console that the call was made in. Null: a token, a key or the portal. */
  readonly sessionId?: number | null;
  readonly ipAddr?: string | null;
  readonly userAgent?: string | null;
  readonly requestId?: string | null;
  /** Set if the call has an Idempotency-Key: the change is made once (`transact-once.ts`). */
  readonly call?: HeldCall | undefined;
  /** The purchase that it belongs to. */
  readonly runId?: string | null;
}

/** A caller of the account's routes. */
export type AccountActor = Extract<
  ChangeOrigin['actor'],
  { readonly type: 'user' | 'service_account' }
>;

export interface RecordedChange<Type extends AuditObjectType = AuditObjectType> {
  readonly objectType: Type;
  readonly objectId: string | number;
  /** Its present display name. */
  readonly objectName?: string | null;
  /** The workspace that it belongs to. */
  readonly environmentId?: number | null;
  /** Null: this change makes the object. Fields left out count as null. */
  readonly before: AuditState<Type> | null;
  /** Null: this change deletes it. */
  readonly after: AuditState<Type> | null;
}

/** The hash before an account's first entry, as `audit_chains` begins. */
export const FIRST_PREVIOUS_HASH = '0'.repeat(64);

const USER_AGENT_LENGTH_MAX = 512;

/**
 * Records one change of `accountId`; an update without a difference is not recorded.
 *
 * @returns the entry's id, or undefined if the change was not recorded.
 * @throws AppError BUG on a field that the registry does not have.
 */
export async function recordChange<Type extends AuditObjectType>(
  transaction: Transaction,
  accountId: number,
  origin: ChangeOrigin,
  change: RecordedChange<Type>,
  nowMs: number,
): Promise<number | undefined> {
  const { objectType, objectId, objectName, environmentId, before, after } = change;
  const changes = diffAttributes(objectType, before, after);
  if (before !== null && after !== null && changes.length === 0) return undefined;

  // Before the lock, which other changes of the account wait for.
  const { ipAddr, userAgent } = await shownCallOf(transaction, accountId, origin);
  const chain = await lockChain(transaction, accountId);
  const auditLogId = chain.lastId + 1;
  const { actor } = origin;
  const entry: HashedAuditEntry = {
    accountId,
    auditLogId,
    // A clock that was set back must not make times decrease.
    occurredAtMs: Math.max(nowMs, chain.lastAtMs),
    action: auditAction(before, after),
    objectType,
    objectId: storable(String(objectId)),
    objectName: storable(objectName ?? null),
    environmentId: environmentId ?? null,
    actorType: actor.type satisfies AuditActorType,
    userId: actor.type === 'user' ? actor.userId : null,
    serviceAccountId: actor.type === 'service_account' ? actor.serviceAccountId : null,
    credentialId: origin.credentialId ?? null,
    ipAddr: ipAddr == null ? null : toStorableText(canonicalAddress(ipAddr)),
    userAgent: storable(userAgent?.slice(0, USER_AGENT_LENGTH_MAX) ?? null),
    requestId: storable(origin.requestId ?? null),
    runId: storable(origin.runId ?? null),
    changes,
    ...(origin.sessionId != null && { sessionId: origin.sessionId }),
    ...(actor.type === 'portal' && {
      portal: { linkId: storable(actor.linkId), label: storable(actor.label) },
    }),
  };
  await insertEntry(transaction, entry, chain.lastHash, hashAuditEntry(entry, chain.lastHash));
  return auditLogId;
}

/** The address and the program of the caller. They are left out in the demo, whose visitors all read its log. */
async function shownCallOf(
  transaction: Transaction,
  accountId: number,
  origin: ChangeOrigin,
): Promise<Pick<ChangeOrigin, 'ipAddr' | 'userAgent'>> {
  if (origin.ipAddr == null && origin.userAgent == null) return {};
  return (await isDemoAccount(transaction, accountId)) ? {} : origin;
}

/** @returns lower-case hexadecimal. */
export function hashAuditEntry(entry: HashedAuditEntry, previousHash: string): string {
  return createHash('sha256').update(auditHashText(entry, previousHash)).digest('hex');
}

interface Chain {
  readonly lastId: number;
  /** -Infinity before the first. */
  readonly lastAtMs: number;
  readonly lastHash: string;
}

async function lockChain(transaction: Transaction, accountId: number): Promise<Chain> {
  const lock = sql<{ lastId: number; lastAtMs: number; lastHash: string }>`
    select last_id as "lastId", (extract(epoch from last_at) * 1000)::float8 as "lastAtMs",
           encode(last_hash, 'hex') as "lastHash"
      from audit_chains where account_id = ${accountId} for no key update`;
  const found = (await lock.execute(transaction)).rows[0];
  if (found) return found;
  // Its first entry refers to the account, and waits for it before there is a row that others wait for (`../README.md`).
  await sql`select from accounts where account_id = ${accountId} for key share`.execute(
    transaction,
  );
  await sql`
    insert into audit_chains (account_id) values (${accountId})
    on conflict (account_id) do nothing`.execute(transaction);
  const made = (await lock.execute(transaction)).rows[0];
  if (!made) throw new AppError('BUG', `account ${accountId} has no audit chain`);
  return made;
}

async function insertEntry(
  transaction: Transaction,
  entry: HashedAuditEntry,
  previousHash: string,
  hash: string,
): Promise<void> {
  const occurredAt = new Date(entry.occurredAtMs);
  await sql`
    with moved as (
      update audit_chains
         set last_id = ${entry.auditLogId}, last_at = ${occurredAt}, last_hash = decode(${hash}, 'hex')
       where account_id = ${entry.accountId}
    )
    insert into audit_logs
      (account_id, audit_log_id, occurred_at, action, object_type, object_id, object_name, environment_id,
       actor_type, user_id, service_account_id, credential_id, ip_addr, user_agent, request_id, run_id, changes,
       portal_link_id, portal_label, session_id, previous_hash, hash)
    values
      (${entry.accountId}, ${entry.auditLogId}, ${occurredAt}, ${entry.action}, ${entry.objectType},
       ${entry.objectId}, ${entry.objectName}, ${entry.environmentId}, ${entry.actorType}, ${entry.userId},
       ${entry.serviceAccountId}, ${entry.credentialId}, ${entry.ipAddr}, ${entry.userAgent}, ${entry.requestId},
       ${entry.runId}, ${JSON.stringify(entry.changes)}::jsonb,
       ${entry.portal?.linkId ?? null}, ${entry.portal?.label ?? null}, ${entry.sessionId ?? null}, decode(${previousHash}, 'hex'),
       decode(${hash}, 'hex'))`.execute(transaction);
}

function storable<Text extends string | null>(text: Text): Text {
  return (text === null ? null : toStorableText(text)) as Text;
}
