/**
 * Writes one export of the audit log, part by part. It goes on at the end of an earlier attempt.
 *
 * The entries are final and numbered without a gap, so the position is one id; a part and the position
 * after it are one write (`database/src/audit/audit-log-exports.ts`). One worker at a time, by lease. When a worker dies,
 * the next one follows when the lease is over; a worker that is stopped gives it back.
 *
 * Before: `api/src/audit/audit-log-exports.ts`, which orders it. Woken by its queue and by `reconcileExports`.
 */
import { createHash } from 'node:crypto';
import {
  appendExportPart,
  claimExport,
  clearExpiredExport,
  completeExport,
  findExportPart,
  listExportsToRun,
  releaseExport,
  type AuditLogExportKey,
} from '@sluice/database/audit/audit-log-exports';
import { listWholeAuditLogs } from '@sluice/database/audit/audit-log-reads';
import type { Database } from '@sluice/database/connection/connection';
import { exportHead, exportLine } from '@sluice/domain/accounts/audit-export';

export interface ExportAuditLogsDeps {
  readonly database: Database;
  readonly now: () => number;
  /** A part is written in a fraction of it. */
  readonly leaseMs: number;
  /** Entries looked at for one part. */
  readonly rowsPerPart: number;
  /** True once the worker must stop: written parts stay, the rest waits. */
  readonly isStopping: () => boolean;
}

export type ExportOutcome = 'completed' | 'stopped' | 'held' | 'lost' | 'finished_before';

/** How long a file is kept. */
const KEPT_MS = 7 * 86_400_000;
/** An export that failed so often is given up. */
const ATTEMPTS_MAX = 5;
const WOKEN_MAX = 100;
const CLEARED_MAX = 1_000;

/** Safe to call at any time, by any number of workers. */
export async function exportAuditLogs(
  deps: ExportAuditLogsDeps,
  key: AuditLogExportKey,
): Promise<ExportOutcome> {
  const { database, leaseMs } = deps;
  const claim = await claimExport(database, key, leaseMs);
  if (claim.outcome === 'held') return 'held';
  if (claim.outcome === 'finished') return 'finished_before';
  const { found, fencing } = claim;
  const { accountId, format, filter, untilId } = found;

  let { afterId, partCount } = found;
  while (afterId < untilId || partCount === 0) {
    if (deps.isStopping()) {
      await releaseExport(database, key, fencing);
      return 'stopped';
    }
    const range = { after: afterId, until: untilId, limit: deps.rowsPerPart };
    const entries = await listWholeAuditLogs(database, accountId, filter, range);
    const lines = entries.map((entry) => exportLine(format, entry));
    if (partCount === 0) lines.unshift(exportHead(format));
    afterId = entries.length < range.limit ? untilId : (entries.at(-1)?.auditLogId ?? untilId);
    const content = Buffer.from(lines.join(''));
    const part = { content, rowCount: entries.length, afterId };
    if (!(await appendExportPart(database, key, fencing, part, leaseMs))) return 'lost';
    partCount++;
  }

  const end = { sha256: await digest(database, key), nowMs: deps.now() };
  const isCompleted = await completeExport(database, key, fencing, {
    ...end,
    expiresAtMs: end.nowMs + KEPT_MS,
  });
  return isCompleted ? 'completed' : 'lost';
}

/** Of the file as it is stored: another process cannot continue a half-made digest. */
async function digest(database: Database, key: AuditLogExportKey): Promise<Buffer> {
  const hash = createHash('sha256');
  for (let part = 0; ; part++) {
    const content = await findExportPart(database, key, part);
    if (!content) return hash.digest();
    hash.update(content);
  }
}

export interface ReconcileExportsDeps {
  readonly database: Database;
  readonly wake: (key: AuditLogExportKey) => Promise<void>;
  readonly now: () => number;
}

/** Wakes exports without a worker, gives up exports that fail again and again, clears expired files. */
export async function reconcileExports({
  database,
  wake,
  now,
}: ReconcileExportsDeps): Promise<void> {
  const keys = await listExportsToRun(database, {
    attemptsMax: ATTEMPTS_MAX,
    expiresAtMs: now() + KEPT_MS,
    limit: WOKEN_MAX,
  });
  await Promise.all(keys.map((key) => wake(key)));
  for (let count = 0; count < CLEARED_MAX; count++) {
    if (!(await clearExpiredExport(database, now()))) return;
  }
}
