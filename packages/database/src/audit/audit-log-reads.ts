/**
 * Reads the audit log: pages of the list, one entry, and whole entries in order for exports and for
 * `verify-audit-chains.ts`. Every statement names the account. Written by `record-change.ts`.
 *
 * A page is one range of one index, for any number of entries: the primary key, or the index of the rarest filter
 * (`audit_logs_by_…`), which end in the id, the order of the list. Times never decrease along ids, so a bound in time
 * becomes a bound in id, looked up in `audit_logs_by_time` first.
 * Two cases have no such bound: filters that are each common but seldom meet, and the beginning of an address that only
 * entries far away have. Then all between is read: a second or two of an account with 2,000,000 entries. Every pair
 * would need an index of its own, which each change would pay for.
 * Names and addresses of actors are looked up now and not kept: entries stay right when people are renamed.
 */
import type { AuditActorType } from '@sluice/domain/accounts/audit-change';
import type { AuditLogEntry, WholeAuditLogEntry } from '@sluice/domain/accounts/audit-entry';
import type { AuditAction } from '@sluice/domain/accounts/audit-registry';
import { sql, type RawBuilder } from 'kysely';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';

/** Conditions on an entry. Absent: no condition. */
export interface AuditLogFilter {
  readonly actorType?: AuditActorType | undefined;
  readonly userId?: number | undefined;
  readonly serviceAccountId?: number | undefined;
  readonly credentialId?: number | undefined;
  readonly sessionId?: number | undefined;
  /** The address begins with this text. */
  readonly ipAddrPrefix?: string | undefined;
  /** Inclusive. */
  readonly startMs?: number | undefined;
  /** Inclusive. */
  readonly endMs?: number | undefined;
  readonly objectType?: string | undefined;
  readonly objectId?: string | undefined;
  readonly action?: AuditAction | undefined;
  readonly attributeName?: string | undefined;
}

export interface AuditLogPosition {
  readonly order: 'asc' | 'desc';
  /** The last id that was seen; the page begins after it in the order asked for. */
  readonly cursor?: number | undefined;
  readonly limit: number;
}

const LIST_COLUMNS = sql`
  l.audit_log_id as "auditLogId", l.occurred_at as "occurredAt", l.action, l.object_type as "objectType",
  l.object_id as "objectId", l.object_name as "objectName", l.environment_id as "environmentId",
  l.actor_type as "actorType", l.user_id as "userId", l.service_account_id as "serviceAccountId",
  coalesce(u.first_name || ' ' || u.last_name, s.name, l.portal_label, c.name) as "actorName", u.email as "actorEmail",
  l.ip_addr as "ipAddr", l.user_agent as "userAgent", l.credential_id::int as "credentialId", l.request_id as "requestId",
  l.changed_attributes as "changedAttributes"`;

const ALL_COLUMNS = sql`${LIST_COLUMNS},
  l.session_id::int as "sessionId", l.portal_link_id as "portalLinkId", l.run_id as "runId", l.changes,
  encode(l.previous_hash, 'hex') as "previousHash", encode(l.hash, 'hex') as hash`;

/** Primary keys of all three. */
const ACTORS = sql`
  left join users u on u.account_id = l.account_id and u.user_id = l.user_id
  left join service_accounts s
    on s.account_id = l.account_id and s.service_account_id = l.service_account_id
  left join api_credentials c on c.account_id = l.account_id and c.credential_id = l.credential_id`;

/** The default page size and the largest, each with one entry more. */
const PREPARED_LIMITS: readonly number[] = [21, 101];

/**
 * One page, in the order asked for. Prepared if there is no filter: then every place in the log has the same plan. The
 * limit stands in the text, because a plan for any limit would be a worse one.
 */
export async function listAuditLogs(
  database: DatabaseOrTransaction,
  accountId: number,
  filter: AuditLogFilter,
  { order, cursor, limit }: AuditLogPosition,
): Promise<AuditLogEntry[]> {
  const conditions = conditionsOf(accountId, filter);
  if (cursor !== undefined)
    conditions.push(
      order === 'asc' ? sql`audit_log_id > ${cursor}` : sql`audit_log_id < ${cursor}`,
    );
  const direction = order === 'asc' ? sql`asc` : sql`desc`;
  const isPrepared = conditions.length <= 2 && PREPARED_LIMITS.includes(limit);
  const { rows } = await sql<AuditLogEntry>`${isPrepared ? PREPARED : sql``}
    select ${LIST_COLUMNS}
      from (select * from audit_logs where ${sql.join(conditions, sql` and `)}
             order by audit_log_id ${direction} limit ${isPrepared ? sql.lit(limit) : limit}) l
      ${ACTORS}
     order by l.audit_log_id ${direction}`.execute(database);
  return rows;
}

/** One entry with all that is kept of it. */
export async function findAuditLog(
  database: DatabaseOrTransaction,
  accountId: number,
  auditLogId: number,
): Promise<WholeAuditLogEntry | undefined> {
  const { rows } = await sql<WholeAuditLogEntry>`
    select ${ALL_COLUMNS} from audit_logs l ${ACTORS}
     where l.account_id = ${accountId} and l.audit_log_id = ${auditLogId}`.execute(database);
  return rows[0];
}

/** Entries `after` < id ≤ `until` that pass the filter, whole, in order of id. */
export async function listWholeAuditLogs(
  database: DatabaseOrTransaction,
  accountId: number,
  filter: AuditLogFilter,
  range: { readonly after: number; readonly until: number; readonly limit: number },
): Promise<WholeAuditLogEntry[]> {
  const conditions = conditionsOf(accountId, filter);
  conditions.push(sql`audit_log_id > ${range.after} and audit_log_id <= ${range.until}`);
  const { rows } = await sql<WholeAuditLogEntry>`
    select ${ALL_COLUMNS}
      from (select * from audit_logs where ${sql.join(conditions, sql` and `)}
             order by audit_log_id limit ${range.limit}) l
      ${ACTORS}
     order by l.audit_log_id`.execute(database);
  return rows;
}

function conditionsOf(accountId: number, filter: AuditLogFilter): RawBuilder<unknown>[] {
  const conditions = [sql`account_id = ${accountId}`];
  const add = <Value>(value: Value | undefined, condition: (value: Value) => RawBuilder<unknown>) =>
    value === undefined ? 0 : conditions.push(condition(value));
  add(filter.actorType, (type) => sql`actor_type = ${type}`);
  add(filter.userId, (id) => sql`user_id = ${id}`);
  add(filter.serviceAccountId, (id) => sql`service_account_id = ${id}`);
  add(filter.credentialId, (id) => sql`credential_id = ${id}`);
  add(filter.sessionId, (id) => sql`session_id = ${id}`);
  // A range, not a pattern, so the text has no wildcards; an index with C collation serves it.
  add(filter.ipAddrPrefix, (prefix) => sql`ip_addr ^@ ${prefix}::text`);
  add(filter.objectType, (type) => sql`object_type = ${type}`);
  add(filter.objectId, (id) => sql`object_id = ${id}`);
  add(filter.action, (action) => sql`action = ${action}`);
  add(filter.attributeName, (name) => sql`changed_attributes ? ${name}`);
  // If no entry is late or early enough, the bound is null and the page is empty.
  add(
    filter.startMs,
    (ms) => sql`audit_log_id >= (
      select t.audit_log_id from audit_logs t where t.account_id = ${accountId} and t.occurred_at >= ${new Date(ms)}
       order by t.occurred_at, t.audit_log_id limit 1)`,
  );
  add(
    filter.endMs,
    (ms) => sql`audit_log_id <= (
      select t.audit_log_id from audit_logs t where t.account_id = ${accountId} and t.occurred_at <= ${new Date(ms)}
       order by t.occurred_at desc, t.audit_log_id desc limit 1)`,
  );
  return conditions;
}
