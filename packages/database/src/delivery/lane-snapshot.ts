/** Columns of a delivery queue for its rules, and its head (`domain/src/delivery/lane.ts`). */
import type { LaneSnapshot } from '@sluice/domain/delivery/lane';
import { sql } from 'kysely';

export interface LaneRow {
  readonly nextStartAt: Date | null;
  readonly state: 'healthy' | 'failing';
  readonly cursor: string;
  readonly attemptedThrough: string;
  readonly nextProbeAt: Date | null;
  readonly concurrencyLimit: number;
  readonly lastSequence: string;
  readonly fencing: string;
}

export const SNAPSHOT = sql`
  lanes.state, lanes.cursor_sequence as cursor, lanes.attempted_sequence as "attemptedThrough",
  lanes.next_probe_at as "nextProbeAt", lanes.send_window as "concurrencyLimit", lanes.last_sequence as "lastSequence",
  lanes.fencing, lanes.next_start_at as "nextStartAt"`;

/**
 * The head of a joined lane, as `LaneRun` finds it: while failing the earliest delivery that was tried and is not
 * finished, else the first one after the cursor. Deliveries about one person stand in a line, so those before the head may
 * never have been tried. By the primary key of attempts, in the range that one run may hold.
 */
export const HEAD_SEQUENCE = sql<string>`
  case when lanes.state = 'failing'
       then coalesce((select sequence from delivery_attempts a
                       where a.environment_id = lanes.environment_id and a.webhook_id = lanes.webhook_id
                         and a.sequence > lanes.cursor_sequence and a.sequence <= lanes.attempted_sequence
                       group by sequence having bool_and(a.outcome = 'retrying')
                       order by sequence limit 1), lanes.cursor_sequence + 1)
       else lanes.cursor_sequence + 1 end`;

/** The snapshot alone, of a row with more columns. */
export function snapshotOf(
  row: LaneRow,
): LaneSnapshot & { lastSequence: number; fencing: number; nextStartAtMs: number | null } {
  return {
    state: row.state,
    cursor: Number(row.cursor),
    attemptedThrough: Number(row.attemptedThrough),
    nextProbeAtMs: row.nextProbeAt?.getTime() ?? null,
    concurrencyLimit: row.concurrencyLimit,
    lastSequence: Number(row.lastSequence),
    fencing: Number(row.fencing),
    nextStartAtMs: row.nextStartAt?.getTime() ?? null,
  };
}
