/**
 * Finds due work of all reconciliation loops in one statement. Separate looks, six a second, were most of the cost of
 * an idle fleet.
 *
 * A part is `true` if a reconcile loop would find work, of any tenant, and perhaps in other cases; the loop's own
 * statement finds the work. Each part reads a partial index of unfinished rows and stops at the first: `lanes_to_wake`,
 * `runs_due`, `vendor_events_due`, `imports_unfinished`, `webhook_replays_running`, `audit_log_exports_unfinished`,
 * `audit_log_exports_expiring`. It reads all of `worker_processes`, which has a row a process. The order makes the
 * planner take these indexes.
 *
 * After: `worker/src/process/reconcile-loops.ts`.
 */
import { sql } from 'kysely';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { IS_IMPORT_UNFINISHED, IS_LEASE_OVER, IS_OF_OPEN_WORKSPACE } from '../imports/imports.ts';
import { unbelievedProbeAt } from '../delivery/lanes.ts';
import { IS_DEPARTED } from './worker-processes.ts';

/**
 * Kinds of reconciled work: lanes to wake, runs to advance, events of the payment provider, imports, replays, exports
 * of the audit log, the work of workers that were killed.
 */
export type DueKind =
  | 'lanes'
  | 'runs'
  | 'vendor-events'
  | 'imports'
  | 'replays'
  | 'exports'
  | 'departed-workers';

/** The kinds of which something is due. A replay or an import that waits for its own time counts as due. */
export async function findDueWork(
  database: DatabaseOrTransaction,
  nowMs: number,
  probeWaitMsMax: number,
): Promise<ReadonlySet<DueKind>> {
  const now = new Date(nowMs);
  const { rows } = await sql<{ kind: DueKind }>`${PREPARED}
    (select 'lanes' as kind from lanes where wake_at <= ${now} order by wake_at limit 1)
    union all
    (select 'lanes' from lanes
      where wake_at > ${unbelievedProbeAt(nowMs, probeWaitMsMax)}
        and (lease_until is null or lease_until <= clock_timestamp())
      order by wake_at limit 1)
    union all
    (select 'runs' from runs
      where status = 'pending' and review_reason is null and next_at <= ${now}
        and (lease_until is null or lease_until < clock_timestamp())
      order by next_at limit 1)
    union all
    (select 'vendor-events' from vendor_events
      where settled_at is null and next_at <= ${now} order by next_at limit 1)
    union all
    (select 'imports' from imports
      where ${IS_IMPORT_UNFINISHED} and ${IS_OF_OPEN_WORKSPACE} and ${IS_LEASE_OVER}
      order by environment_id, import_id limit 1)
    union all
    (select 'replays' from webhook_replays
      where state = 'running' order by environment_id, webhook_id limit 1)
    union all
    (select 'exports' from audit_log_exports
      where status in ('pending', 'processing') order by created_at limit 1)
    union all
    (select 'exports' from audit_log_exports
      where expires_at <= ${now} order by expires_at limit 1)
    union all
    (select 'departed-workers' from worker_processes where ${IS_DEPARTED} limit 1)`.execute(
    database,
  );
  return new Set(rows.map(({ kind }) => kind));
}
