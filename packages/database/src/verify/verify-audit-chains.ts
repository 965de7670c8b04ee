/**
 * Checks the audit log: every account's chain, from its first entry to its recorded end.
 *
 * `audit_chains` has that end. The check reads one account at a time, in one snapshot, so that changes made meanwhile
 * neither disturb the check nor wait for it; by primary key in pages, so that memory does not grow with the account. It
 * cannot see a whole chain that the owner of the database wrote anew: compare with an export.
 *
 * Used by `npm run verify`.
 */
import type { HashedAuditEntry, PortalActor } from '@sluice/domain/accounts/audit-change';
import { sql } from 'kysely';
import { FIRST_PREVIOUS_HASH, hashAuditEntry } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';

/** One thing that differs. */
export interface AuditFinding {
  readonly accountId: number;
  /** In words, with the id of the entry. */
  readonly message: string;
}

export interface AuditVerification {
  readonly entryCount: number;
  readonly findings: readonly AuditFinding[];
}

interface StoredEntry {
  readonly entry: HashedAuditEntry;
  readonly previousHash: string;
  readonly hash: string;
}

const PAGE_SIZE = 2_000;

/** All accounts, by id. */
export async function listAuditedAccounts(database: DatabaseOrTransaction): Promise<number[]> {
  const { rows } = await sql<{ accountId: string }>`
    select account_id as "accountId" from accounts order by account_id`.execute(database);
  return rows.map((row) => Number(row.accountId));
}

/** Checks one account. `onProgress` hears how many of how many entries are done, after each page. */
export async function verifyAuditChain(
  database: Database,
  accountId: number,
  onProgress: (done: number, all: number) => void,
): Promise<AuditVerification> {
  return database
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute((transaction) => checkAuditChain(transaction, accountId, onProgress));
}

/** {@link verifyAuditChain} in a transaction of the caller's, in pages of `pageSize`. */
export async function checkAuditChain(
  transaction: DatabaseOrTransaction,
  accountId: number,
  onProgress: (done: number, all: number) => void,
  pageSize = PAGE_SIZE,
): Promise<AuditVerification> {
  const end = await findEnd(transaction, accountId);
  const findings: AuditFinding[] = [];
  const report = (message: string) => void findings.push({ accountId, message });
  let entryCount = 0;
  let last: Link = { id: 0, atMs: -Infinity, hash: FIRST_PREVIOUS_HASH };
  for (;;) {
    const page = await listStored(transaction, accountId, last.id, pageSize);
    for (const stored of page) {
      const { entry, hash } = stored;
      checkEntry(stored, last, report);
      last = { id: entry.auditLogId, atMs: entry.occurredAtMs, hash };
    }
    entryCount += page.length;
    onProgress(entryCount, end.id);
    if (page.length < pageSize) break;
  }
  if (last.id < end.id) report(missing(last.id + 1, end.id));
  else if (last.id > end.id) report(`entries after ${end.id} were put in`);
  else if (last.hash !== end.hash) report(`entry ${end.id} is not the last that was recorded`);
  return { entryCount, findings };
}

interface Link {
  readonly id: number;
  readonly atMs: number;
  readonly hash: string;
}

/** An entry against itself and the one before. */
function checkEntry(
  { entry, previousHash, hash }: StoredEntry,
  last: Link,
  report: (message: string) => void,
): void {
  const id = entry.auditLogId;
  if (id !== last.id + 1) report(missing(last.id + 1, id - 1));
  else if (previousHash !== last.hash)
    report(`entry ${id} does not follow the entry before it: one of them was replaced`);
  if (hashAuditEntry(entry, previousHash) !== hash)
    report(`entry ${id} differs from the recorded entry: its hash differs`);
  if (entry.occurredAtMs < last.atMs) report(`entry ${id} is earlier than the entry before it`);
}

const missing = (from: number, to: number): string =>
  from === to ? `entry ${from} is missing` : `entries ${from} to ${to} are missing`;

/** The recorded end of the chain; id 0 for an account without a chain. */
async function findEnd(
  transaction: DatabaseOrTransaction,
  accountId: number,
): Promise<{ readonly id: number; readonly hash: string }> {
  const { rows } = await sql<{ id: number; hash: string }>`
    select last_id as id, encode(last_hash, 'hex') as hash
      from audit_chains where account_id = ${accountId}`.execute(transaction);
  return rows[0] ?? { id: 0, hash: FIRST_PREVIOUS_HASH };
}

/** Index: primary key. */
async function listStored(
  transaction: DatabaseOrTransaction,
  accountId: number,
  after: number,
  limit: number,
): Promise<StoredEntry[]> {
  const { rows } = await sql<
    Omit<HashedAuditEntry, 'portal' | 'sessionId'> & {
      sessionId: number | null;
      portalLinkId: string | null;
      portalLabel: string | null;
      previousHash: string;
      hash: string;
    }
  >`
    select account_id::float8 as "accountId", audit_log_id as "auditLogId",
           (extract(epoch from occurred_at) * 1000)::float8 as "occurredAtMs", action,
           object_type as "objectType", object_id as "objectId", object_name as "objectName",
           environment_id as "environmentId", actor_type as "actorType", user_id as "userId",
           service_account_id as "serviceAccountId", credential_id::float8 as "credentialId",
           ip_addr as "ipAddr", user_agent as "userAgent", request_id as "requestId",
           run_id as "runId", changes, portal_link_id as "portalLinkId", portal_label as "portalLabel",
           session_id::float8 as "sessionId",
           encode(previous_hash, 'hex') as "previousHash", encode(hash, 'hex') as hash
      from audit_logs where account_id = ${accountId} and audit_log_id > ${after}
     order by audit_log_id limit ${limit}`.execute(transaction);
  return rows.map(({ previousHash, hash, portalLinkId, portalLabel, sessionId, ...kept }) => {
    // Both are hashed if one is there, so that neither can be put in or taken out.
    const isPortal = portalLinkId !== null || portalLabel !== null;
    const portal = { linkId: portalLinkId, label: portalLabel } as PortalActor;
    const entry = {
      ...kept,
      ...(sessionId !== null && { sessionId }),
      ...(isPortal && { portal }),
    };
    return { entry, previousHash, hash };
  });
}
