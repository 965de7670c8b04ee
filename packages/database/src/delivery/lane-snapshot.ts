/** A lane's columns as the rules of a lane want them (`domain/src/delivery/lane.ts`). */
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

/** Only that of a row with more. */
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
