/**
 * Exports of the audit log: ordered, written part by part under a lease, read, and cleared away.
 *
 *   pending ──claim──▶ processing ──all entries seen──▶ completed ──expires_at──▶ gone
 *                        └──too many attempts──▶ failed ──────────expires_at──▶ gone
 *
 * A claim takes a fencing number; a write with an older one changes no row, so that a worker that was thought dead
 * cannot write into the file of the next one. Statements use the primary key, which begins with the account, unless
 * their comments name another index.
 */
import type { ExportFormat } from '@sluice/domain/accounts/audit-export';
import { sql } from 'kysely';
import type { AuditLogFilter } from './audit-log-reads.ts';
import { recordChange, type AccountActor, type ChangeOrigin } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';
import { transactOnce } from '../changes/transact-once.ts';

export interface AuditLogExportKey {
  readonly accountId: number;
  readonly exportId: string;
}

export interface AuditLogExport extends AuditLogExportKey {
  readonly status: 'pending' | 'processing' | 'completed' | 'failed';
  readonly format: ExportFormat;
  readonly filter: AuditLogFilter;
  /** Every entry up to here was looked at … */
  readonly afterId: number;
  /** … and here it ends. */
  readonly untilId: number;
  readonly rowCount: number;
  readonly partCount: number;
  readonly sizeBytes: number;
  /** Lower-case hexadecimal, of the whole file. */
  readonly sha256: string | null;
  readonly requestedByUserId: number | null;
  readonly requestedByServiceAccountId: number | null;
  readonly createdAt: Date;
  readonly completedAt: Date | null;
  readonly expiresAt: Date | null;
}

const COLUMNS = sql`
  account_id::float8 as "accountId", export_id as "exportId", status, format, filter, after_id as "afterId",
  until_id as "untilId", row_count as "rowCount", part_count as "partCount",
  size_bytes::float8 as "sizeBytes", encode(sha256, 'hex') as sha256,
  requested_by_user_id as "requestedByUserId",
  requested_by_service_account_id as "requestedByServiceAccountId", created_at as "createdAt",
  completed_at as "completedAt", expires_at as "expiresAt"`;

/** Unfinished ones of an account; a further one is refused. */
const UNFINISHED_MAX = 3;

/**
 * Orders an export of the entries that are there now, its own order included, which is recorded.
 * Undefined if the account has as many unfinished ones as it may.
 */
export async function orderAuditLogExport(
  database: Database,
  order: AuditLogExportKey & { readonly format: ExportFormat; readonly filter: AuditLogFilter },
  origin: ChangeOrigin,
  nowMs: number,
): Promise<AuditLogExport | undefined> {
  const { accountId, exportId, format, filter } = order;
  const { actor } = origin;
  return transactOnce(
    database,
    origin.call,
    () => true,
    async (transaction) => {
      // Counted under the lock of the account's chain, so that orders at the same time are counted too.
      const untilId = await recordChange(
        transaction,
        accountId,
        origin,
        {
          objectType: 'audit_log_export',
          objectId: exportId,
          before: null,
          after: { format, filters: filter },
        },
        nowMs,
      );
      const { rows } = await sql<AuditLogExport>`
      insert into audit_log_exports
        (account_id, export_id, created_at, until_id, format, filter, requested_by_user_id,
         requested_by_service_account_id)
      select ${accountId}, ${exportId}, ${new Date(nowMs)}, ${untilId}, ${format}, ${JSON.stringify(filter)}::jsonb,
             ${actor.type === 'user' ? actor.userId : null}::int,
             ${actor.type === 'service_account' ? actor.serviceAccountId : null}::int
       where (select count(*) from audit_log_exports
               where account_id = ${accountId} and status in ('pending', 'processing')) < ${UNFINISHED_MAX}
      returning ${COLUMNS}`.execute(transaction);
      if (!rows[0]) throw new TooManyExports();
      return rows[0];
    },
  ).catch((error: unknown) => {
    if (error instanceof TooManyExports) return undefined;
    throw error;
  });
}

/** A user or a service account that asked for the link of a file, and its session if it asked in the console. */
export interface ExportReader {
  readonly actor: AccountActor;
  readonly sessionId: number | null;
}

/** Records that the file is fetched, before its first byte is sent. Each call is an entry of its own. */
export async function recordExportDownload(
  database: Database,
  { accountId, exportId }: AuditLogExportKey,
  origin: ChangeOrigin & ExportReader,
  nowMs: number,
): Promise<void> {
  await database.transaction().execute((transaction) =>
    recordChange(
      transaction,
      accountId,
      origin,
      {
        objectType: 'audit_log_export',
        objectId: exportId,
        before: {},
        after: { downloaded_at: new Date(nowMs).toISOString() },
      },
      nowMs,
    ),
  );
}

/** Undoes the order's transaction. */
class TooManyExports extends Error {}

export async function findAuditLogExport(
  database: DatabaseOrTransaction,
  { accountId, exportId }: AuditLogExportKey,
): Promise<AuditLogExport | undefined> {
  const { rows } = await sql<AuditLogExport>`
    select ${COLUMNS} from audit_log_exports
     where account_id = ${accountId} and export_id = ${exportId}`.execute(database);
  return rows[0];
}

/** One part of the file; undefined beyond the last. */
export async function findExportPart(
  database: DatabaseOrTransaction,
  { accountId, exportId }: AuditLogExportKey,
  part: number,
): Promise<Buffer | undefined> {
  const { rows } = await sql<{ content: Buffer }>`
    select content from audit_log_export_parts
     where account_id = ${accountId} and export_id = ${exportId} and part = ${part}`.execute(
    database,
  );
  return rows[0]?.content;
}

export type ExportClaim =
  | { readonly outcome: 'claimed'; readonly fencing: string; readonly found: AuditLogExport }
  /** Somebody else is at it. */
  | { readonly outcome: 'held' }
  /** It is finished, or gone. */
  | { readonly outcome: 'finished' };

/** Takes the export for `leaseMs`, and counts the attempt. */
export async function claimExport(
  database: DatabaseOrTransaction,
  { accountId, exportId }: AuditLogExportKey,
  leaseMs: number,
): Promise<ExportClaim> {
  const { rows } = await sql<AuditLogExport & { fencing: string }>`
    update audit_log_exports
       set status = 'processing', fencing = fencing + 1, attempt_count = attempt_count + 1,
           lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
     where account_id = ${accountId} and export_id = ${exportId} and status in ('pending', 'processing')
       and coalesce(lease_until < clock_timestamp(), true)
    returning ${COLUMNS}, fencing`.execute(database);
  const [row] = rows;
  if (row) {
    const { fencing, ...found } = row;
    return { outcome: 'claimed', fencing, found };
  }
  const now = await findAuditLogExport(database, { accountId, exportId });
  return { outcome: now && !isFinished(now) ? 'held' : 'finished' };
}

const isFinished = ({ status }: AuditLogExport) => status === 'completed' || status === 'failed';

export interface ExportPart {
  readonly content: Buffer;
  readonly rowCount: number;
  /** Every entry up to here was looked at. */
  readonly afterId: number;
}

/** Writes the next part and the position after it, and holds the lease on; attempts count anew. False: the lease is lost. */
export async function appendExportPart(
  database: DatabaseOrTransaction,
  { accountId, exportId }: AuditLogExportKey,
  fencing: string,
  part: ExportPart,
  leaseMs: number,
): Promise<boolean> {
  const { rows } = await sql`
    with moved as (
      update audit_log_exports
         set attempt_count = 0, part_count = part_count + 1, row_count = row_count + ${part.rowCount}, after_id = ${part.afterId},
             size_bytes = size_bytes + ${part.content.length},
             lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
       where account_id = ${accountId} and export_id = ${exportId} and fencing = ${fencing}
         and status = 'processing'
      returning account_id, export_id, part_count
    )
    insert into audit_log_export_parts (account_id, export_id, part, content)
    select account_id, export_id, part_count - 1, ${part.content} from moved
    returning 1`.execute(database);
  return rows.length > 0;
}

/** Ends the export well. False: the lease is lost. */
export async function completeExport(
  database: DatabaseOrTransaction,
  { accountId, exportId }: AuditLogExportKey,
  fencing: string,
  end: { readonly sha256: Buffer; readonly expiresAtMs: number; readonly nowMs: number },
): Promise<boolean> {
  const { rows } = await sql`
    update audit_log_exports
       set status = 'completed', sha256 = ${end.sha256}, completed_at = ${new Date(end.nowMs)},
           expires_at = ${new Date(end.expiresAtMs)}, lease_until = null
     where account_id = ${accountId} and export_id = ${exportId} and fencing = ${fencing}
       and status = 'processing'
    returning 1`.execute(database);
  return rows.length > 0;
}

/** Gives the lease back, so that the export can be taken up at once. */
export async function releaseExport(
  database: DatabaseOrTransaction,
  { accountId, exportId }: AuditLogExportKey,
  fencing: string,
): Promise<void> {
  await sql`
    update audit_log_exports set lease_until = null
     where account_id = ${accountId} and export_id = ${exportId} and fencing = ${fencing}`.execute(
    database,
  );
}

/**
 * Unfinished exports without a holder, oldest first. Exports that were begun `attemptsMax` times without a result end
 * as failed instead and expire. Index: `audit_log_exports_unfinished`. May run at the same time.
 */
export async function listExportsToRun(
  database: DatabaseOrTransaction,
  limits: { readonly attemptsMax: number; readonly expiresAtMs: number; readonly limit: number },
): Promise<AuditLogExportKey[]> {
  const { rows } = await sql<AuditLogExportKey>`
    with failed as (
      update audit_log_exports
         set status = 'failed', expires_at = ${new Date(limits.expiresAtMs)}
       where status in ('pending', 'processing') and coalesce(lease_until < clock_timestamp(), true)
         and attempt_count >= ${limits.attemptsMax}
    )
    select account_id::float8 as "accountId", export_id as "exportId" from audit_log_exports
     where status in ('pending', 'processing') and coalesce(lease_until < clock_timestamp(), true)
       and attempt_count < ${limits.attemptsMax}
     order by created_at limit ${limits.limit}`.execute(database);
  return rows;
}

/** Clears expired files away, one a call. Index: `audit_log_exports_expiring`. False if there is no expired file. */
export async function clearExpiredExport(
  database: DatabaseOrTransaction,
  nowMs: number,
): Promise<boolean> {
  const { rows } = await sql`
    delete from audit_log_exports
     where (account_id, export_id) in (
       select account_id, export_id from audit_log_exports
        where expires_at <= ${new Date(nowMs)} order by expires_at limit 1 for update skip locked)
    returning 1`.execute(database);
  return rows.length > 0;
}
