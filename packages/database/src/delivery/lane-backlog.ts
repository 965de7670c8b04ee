/**
 * Unsent deliveries of all delivery queues, for the metrics of alerts.
 *
 * The one statement reads the partial index `lanes_to_wake`, which holds the lanes with work, and the
 * primary key of `delivery_log` once a lane. It is the installation's, of every tenant.
 *
 * Used by `worker/src/process/backlog-metrics.ts`.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface LaneBacklog {
  readonly laneCount: number;
  readonly deliveryCount: number;
  /** Requests that they may have under way, all together. */
  readonly windowCount: number;
  /**
   * When the oldest of the deliveries was logged that does not wait for its webhook's own rate; null if there is no
   * such delivery.
   */
  readonly oldestAtMs: number | null;
}

const NOTHING: LaneBacklog = { laneCount: 0, deliveryCount: 0, windowCount: 0, oldestAtMs: null };

/**
 * When a lane with a rate limit is so long behind its own next start, it waits for us, not for its rate. Longer than
 * a lost wake-up takes.
 */
const LATE_START_MS = 5_000;

/**
 * By state. Deliveries of a disabled webhook are not work, and not counted. Deliveries that wait because events exceed
 * the webhook's rate have no age: they are not late, and another worker would not help.
 */
export async function findLaneBacklog(
  database: DatabaseOrTransaction,
  nowMs: number,
): Promise<{ readonly healthy: LaneBacklog; readonly failing: LaneBacklog }> {
  const { rows } = await sql<{
    state: 'healthy' | 'failing';
    laneCount: string;
    deliveryCount: string;
    windowCount: string;
    oldestAt: Date | null;
  }>`
    select lanes.state, count(*) as "laneCount",
           sum(lanes.last_sequence - lanes.cursor_sequence) as "deliveryCount",
           sum(lanes.send_window) as "windowCount",
           min(head.appended_at) filter (
             where lanes.state = 'failing' or lanes.next_start_at is null
                or lanes.next_start_at <= ${new Date(nowMs - LATE_START_MS)}) as "oldestAt"
      from lanes
      join delivery_log as head
        on head.environment_id = lanes.environment_id and head.webhook_id = lanes.webhook_id
       and head.sequence = lanes.cursor_sequence + 1
     where lanes.wake_at is not null
     group by lanes.state`.execute(database);
  const backlogOf = (state: 'healthy' | 'failing'): LaneBacklog => {
    const row = rows.find((found) => found.state === state);
    return row === undefined
      ? NOTHING
      : {
          laneCount: Number(row.laneCount),
          deliveryCount: Number(row.deliveryCount),
          windowCount: Number(row.windowCount),
          oldestAtMs: row.oldestAt?.getTime() ?? null,
        };
  };
  return { healthy: backlogOf('healthy'), failing: backlogOf('failing') };
}
