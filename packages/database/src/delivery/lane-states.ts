/**
 * A lane as it explains itself to its webhook's owner: what it waits for, since when, and how much
 * waits behind it. For the machine's own look, `findLane` of `lanes.ts`.
 */
import type { FailureClass } from '@sluice/domain/delivery/delivery-failure';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { HEAD_SEQUENCE } from './lane-snapshot.ts';
import type { LaneKey } from './lanes.ts';

/** The delivery that is tried alone while failing, else the first that is not delivered or abandoned. */
export interface LaneHead {
  readonly sequence: number;
  readonly eventId: string;
  readonly eventType: string;
  readonly attempts: number;
  /** Null before the first attempt has ended. */
  readonly firstAttemptAt: Date | null;
  readonly lastAttemptAt: Date | null;
  readonly status: number | null;
  readonly failure: FailureClass | null;
  readonly failureMessage: string | null;
}

export interface LaneState {
  readonly state: 'healthy' | 'failing';
  readonly isPaused: boolean;
  /** A worker is sending. */
  readonly isHeld: boolean;
  /** Deliveries that are neither delivered nor abandoned, the head among them. */
  readonly unfinishedCount: number;
  readonly nextProbeAt: Date | null;
  readonly head: LaneHead | undefined;
}

interface Row extends Omit<LaneState, 'unfinishedCount' | 'head'>, Omit<LaneHead, 'sequence'> {
  readonly unfinishedCount: string;
  readonly sequence: string | null;
}

/**
 * Undefined where there is no such webhook. Counts by subtraction, so that a backlog of millions
 * costs what an empty one does: only what was tried out of order beyond the cursor is looked at,
 * and that is as much as one run may hold. By the primary keys of lanes, log and attempts.
 */
export async function findLaneState(
  database: DatabaseOrTransaction,
  lane: LaneKey,
): Promise<LaneState | undefined> {
  const { rows } = await sql<Row>`
    select lanes.state, lanes.is_paused as "isPaused", coalesce(lanes.lease_until > clock_timestamp(), false) as "isHeld",
           lanes.next_probe_at as "nextProbeAt",
           lanes.last_sequence - lanes.cursor_sequence - finished.count as "unfinishedCount",
           log.sequence, log.event_id as "eventId", log.event_type as "eventType",
           coalesce(latest.attempt, 0) as attempts, first.started_at as "firstAttemptAt",
           latest.started_at as "lastAttemptAt", latest.status, latest.failure, latest.failure_message as "failureMessage"
      from lanes
     cross join lateral (
        select count(*) from delivery_attempts a
         where a.environment_id = lanes.environment_id and a.webhook_id = lanes.webhook_id
           and a.sequence > lanes.cursor_sequence and a.sequence <= lanes.attempted_sequence
           and a.outcome <> 'retrying') finished
      left join delivery_log log on log.environment_id = lanes.environment_id and log.webhook_id = lanes.webhook_id
                                and log.sequence = ${HEAD_SEQUENCE}
      left join lateral (
        select attempt, started_at, status, failure, failure_message from delivery_attempts a
         where a.environment_id = log.environment_id and a.webhook_id = log.webhook_id and a.sequence = log.sequence
         order by attempt desc limit 1) latest on true
      left join delivery_attempts first on first.environment_id = log.environment_id and first.webhook_id = log.webhook_id
                                       and first.sequence = log.sequence and first.attempt = 1
     where lanes.environment_id = ${lane.environmentId} and lanes.webhook_id = ${lane.webhookId}`.execute(
    database,
  );
  const [row] = rows;
  if (!row) return undefined;
  const { state, isPaused, isHeld, nextProbeAt, unfinishedCount, sequence, ...head } = row;
  return {
    state,
    isPaused,
    isHeld,
    nextProbeAt,
    unfinishedCount: Number(unfinishedCount),
    head: sequence === null ? undefined : { ...head, sequence: Number(sequence) },
  };
}
