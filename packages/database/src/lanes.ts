/**
 * Lanes: how far each webhook's log is sent, and who is sending it.
 *
 * A lane is drained by the holder of its lease. Claiming makes the fencing number one higher, and
 * every write of a drain names the number it was given, so a worker that lost its lease writes
 * nothing. Lease times are by the database's clock, which all workers share; probe times are by
 * the workers' clock, which is handed in.
 *
 * Every statement finds its lane by the primary key (environment_id, webhook_id), except
 * `listLanesToWake`, which reads the partial index `lanes_to_wake`.
 *
 * Used by `worker/src/deliver-webhook.ts` (step 11) and `worker/src/sweep-lanes.ts`.
 */
import type { FailureClass } from '@sluice/domain/delivery-failure';
import type { LaneSnapshot } from '@sluice/domain/lane';
import { ALERT_EVENT_TYPES } from '@sluice/domain/reporting-event';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';

export interface LaneKey {
  readonly environmentId: number;
  readonly webhookId: number;
}

/** Where and how the deliveries of a lane are sent now. */
export interface LaneTarget {
  readonly endpoint: string;
  /** As it is stored: sealed. */
  readonly signingKey: string;
  /** The one that replaces it at `nextSignsFromMs`; both null but while keys are rotated. */
  readonly nextSigningKey: string | null;
  readonly nextSignsFromMs: number | null;
  /** Adds the headers of Standard Webhooks. */
  readonly standardWebhooks: boolean;
  /** Null: as fast as it goes. */
  readonly rateLimitPerSecond: number | null;
  /** Null: what the worker allows. */
  readonly windowMax: number | null;
  /** As they are stored: sealed JSON. */
  readonly customHeaders: string | null;
}

export const TARGET = sql`
  webhooks.endpoint, webhooks.signing_key as "signingKey", webhooks.next_signing_key as "nextSigningKey",
  (extract(epoch from webhooks.next_signs_from) * 1000)::float8 as "nextSignsFromMs",
  webhooks.standard_webhooks as "standardWebhooks", webhooks.rate_limit_per_second as "rateLimitPerSecond",
  webhooks.window_max as "windowMax", webhooks.custom_headers as "customHeaders"`;

export interface ClaimedLane extends LaneSnapshot, LaneTarget {
  readonly fencing: number;
  readonly lastSequence: number;
  /** No request before it; null where there is no rate limit, or nothing to remember. */
  readonly nextStartAtMs: number | null;
}

interface LaneRow {
  readonly nextStartAt: Date | null;
  readonly state: 'healthy' | 'failing';
  readonly cursor: string;
  readonly attemptedThrough: string;
  readonly nextProbeAt: Date | null;
  readonly window: number;
  readonly lastSequence: string;
  readonly fencing: string;
}

const SNAPSHOT = sql`
  lanes.state, lanes.cursor_sequence as cursor, lanes.attempted_sequence as "attemptedThrough",
  lanes.next_probe_at as "nextProbeAt", lanes.send_window as "window", lanes.last_sequence as "lastSequence",
  lanes.fencing, lanes.next_start_at as "nextStartAt"`;

/**
 * Takes the lease of a lane that has something to send now: not paused, not held by another, and
 * not waiting for a later probe. Undefined otherwise; `findLane` says why.
 */
export async function claimLane(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  leaseMs: number,
  nowMs: number,
): Promise<ClaimedLane | undefined> {
  const { rows } = await sql<LaneRow & LaneTarget>`
    update lanes
       set fencing = fencing + 1, lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
      from webhooks
     where lanes.environment_id = ${lane.environmentId} and lanes.webhook_id = ${lane.webhookId}
       and webhooks.environment_id = lanes.environment_id and webhooks.webhook_id = lanes.webhook_id
       and not is_paused and last_sequence > cursor_sequence
       and (lease_until is null or lease_until <= clock_timestamp())
       and (next_probe_at is null or next_probe_at <= ${new Date(nowMs)})
       and (next_start_at is null or next_start_at <= ${new Date(nowMs)})
    returning ${SNAPSHOT}, ${TARGET}`.execute(database);
  const [row] = rows;
  return row && { ...targetOf(row), ...snapshotOf(row) };
}

export interface LaneReport extends LaneSnapshot {
  readonly lastSequence: number;
  readonly nextStartAtMs: number | null;
  readonly isPaused: boolean;
  readonly isHeld: boolean;
}

/** A lane as it stands, for those who only look. */
export async function findLane(
  database: DatabaseOrTransaction,
  lane: LaneKey,
): Promise<LaneReport | undefined> {
  const { rows } = await sql<LaneRow & { isPaused: boolean; isHeld: boolean }>`
    select ${SNAPSHOT}, is_paused as "isPaused", coalesce(lease_until > clock_timestamp(), false) as "isHeld"
      from lanes
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}`.execute(
    database,
  );
  const [row] = rows;
  return row && { ...snapshotOf(row), isPaused: row.isPaused, isHeld: row.isHeld };
}

/** One attempt, as it is kept. */
export interface AttemptRecord {
  readonly sequence: number;
  /** From 1. */
  readonly attempt: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly status: number | null;
  readonly outcome: 'delivered' | 'retrying' | 'abandoned';
  readonly failure: FailureClass | null;
  readonly failureMessage: string | null;
  /** Status line and headers, as text. */
  readonly responseHead: string | null;
  readonly responseBody: string | null;
}

export interface LaneProgress {
  readonly snapshot: LaneSnapshot;
  readonly attempts: readonly AttemptRecord[];
  /** Where the webhook has a rate limit. */
  readonly nextStartAtMs?: number | null;
  /** The endpoint that `snapshot` speaks of: if it was changed meanwhile, the head is probed at once. */
  readonly endpoint: string;
  /** Gives the lease back. */
  readonly isLast: boolean;
}

export interface LaneAfterProgress extends LaneTarget {
  readonly lastSequence: number;
  readonly isPaused: boolean;
  /** As kept: earlier than the snapshot's where the endpoint was changed. */
  readonly nextProbeAtMs: number | null;
  /** Of the lease, at least half of `leaseMs`; 0 where it was given back. */
  readonly leaseLeftMs: number;
}

/**
 * Keeps what a drain has come to: its attempts and the lane's new state, in one statement, however
 * many. Undefined, with nothing written, where `fencing` is no longer the lane's or the lane is
 * gone. May be repeated when its answer was lost.
 */
export async function recordProgress(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  fencing: number,
  progress: LaneProgress,
  leaseMs: number,
  nowMs: number,
): Promise<LaneAfterProgress | undefined> {
  const { snapshot, attempts } = progress;
  const nextProbeAt = snapshot.nextProbeAtMs === null ? null : new Date(snapshot.nextProbeAtMs);
  const nextStartAt = progress.nextStartAtMs == null ? null : new Date(progress.nextStartAtMs);
  const hasRecovered =
    snapshot.state === 'healthy' && attempts.some(({ outcome }) => outcome === 'delivered');
  const abandoned = attempts.filter(({ outcome }) => outcome === 'abandoned');
  // Not what an operator had tried once, nor an alert: of those nobody is told.
  const firstAbandoned =
    abandoned.length === 0
      ? sql`null::bigint`
      : sql`(
        select min(sequence) from delivery_log
         where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
           and sequence = any (${abandoned.map(({ sequence }) => sequence)}::bigint[])
           and origin = 'event' and event_type <> all (${[...ALERT_EVENT_TYPES]}::text[]))`;
  const { rows } = await sql<
    LaneTarget & {
      lastSequence: string;
      isPaused: boolean;
      nextProbeAt: Date | null;
      leaseLeftMs: number | null;
    }
  >`
    with lane as (
      update lanes
         set state = ${snapshot.state}, cursor_sequence = ${snapshot.cursor},
             attempted_sequence = ${snapshot.attemptedThrough}, send_window = ${snapshot.window},
             next_start_at = ${nextStartAt},
             -- An episode of failure, from the first one to the first success (lane-alerts.ts).
             failing_since = case when ${hasRecovered} then null
                                  when ${snapshot.state === 'failing'} then coalesce(failing_since, ${new Date(nowMs)})
                                  else failing_since end,
             is_failure_told = is_failure_told and not ${hasRecovered},
             abandoned_sequence = case when ${hasRecovered} and is_abandonment_told then null
                                       else coalesce(abandoned_sequence, ${firstAbandoned}) end,
             is_abandonment_told = is_abandonment_told and not ${hasRecovered},
             next_probe_at = case when ${nextProbeAt}::timestamptz is null or webhooks.endpoint = ${progress.endpoint}
                                  then ${nextProbeAt}::timestamptz
                                  else least(${nextProbeAt}::timestamptz, ${new Date(nowMs)}) end,
             -- Prolonged only once half of it is gone: each change of it is a change of an index.
             lease_until = case when ${progress.isLast} then null
                                when lease_until > clock_timestamp() + ${leaseMs / 2} * interval '1 millisecond' then lease_until
                                else clock_timestamp() + ${leaseMs} * interval '1 millisecond' end
        from webhooks
       where lanes.environment_id = ${lane.environmentId} and lanes.webhook_id = ${lane.webhookId}
         and lanes.fencing = ${fencing}
         and webhooks.environment_id = lanes.environment_id and webhooks.webhook_id = lanes.webhook_id
      returning lanes.environment_id, lanes.webhook_id, last_sequence, is_paused, next_probe_at,
                lease_until, ${TARGET}
    ), kept as (
      insert into delivery_attempts
        (environment_id, webhook_id, sequence, attempt, started_at, duration_ms, status, outcome, failure,
         failure_message, response_head, response_body)
      select lane.environment_id, lane.webhook_id, a.*
        from lane, unnest(
          ${attempts.map((attempt) => attempt.sequence)}::bigint[],
          ${attempts.map((attempt) => attempt.attempt)}::int[],
          ${attempts.map((attempt) => new Date(attempt.startedAtMs))}::timestamptz[],
          ${attempts.map((attempt) => attempt.durationMs)}::int[],
          ${attempts.map((attempt) => attempt.status)}::int[],
          ${attempts.map((attempt) => attempt.outcome)}::text[],
          ${attempts.map((attempt) => attempt.failure)}::text[],
          ${attempts.map((attempt) => attempt.failureMessage)}::text[],
          ${attempts.map((attempt) => attempt.responseHead)}::text[],
          ${attempts.map((attempt) => attempt.responseBody)}::text[]) a
      -- Only a repetition finds its rows there.
      on conflict do nothing
    )
    select lane.*, last_sequence as "lastSequence", is_paused as "isPaused", next_probe_at as "nextProbeAt",
           (extract(epoch from lease_until - clock_timestamp()) * 1000)::float8 as "leaseLeftMs"
      from lane`.execute(database);
  const [row] = rows;
  return (
    row && {
      ...targetOf(row),
      lastSequence: Number(row.lastSequence),
      isPaused: row.isPaused,
      nextProbeAtMs: row.nextProbeAt?.getTime() ?? null,
      leaseLeftMs: row.leaseLeftMs ?? 0,
    }
  );
}

/**
 * Lanes that should be running and that nobody may have been told of: work without a lease, a lease
 * that has run out, a probe that is due. Longest due first, at most `limit`.
 */
export async function listLanesToWake(
  database: DatabaseOrTransaction,
  nowMs: number,
  limit: number,
): Promise<LaneKey[]> {
  const { rows } = await sql<LaneKey>`
    select environment_id as "environmentId", webhook_id as "webhookId" from lanes
     where wake_at <= ${new Date(nowMs)}
     order by wake_at limit ${limit}`.execute(database);
  return rows;
}

export function targetOf(row: LaneTarget): LaneTarget {
  return {
    endpoint: row.endpoint,
    signingKey: row.signingKey,
    nextSigningKey: row.nextSigningKey,
    nextSignsFromMs: row.nextSignsFromMs,
    standardWebhooks: row.standardWebhooks,
    rateLimitPerSecond: row.rateLimitPerSecond,
    windowMax: row.windowMax,
    customHeaders: row.customHeaders,
  };
}

function snapshotOf(
  row: LaneRow,
): LaneSnapshot & { lastSequence: number; fencing: number; nextStartAtMs: number | null } {
  return {
    state: row.state,
    cursor: Number(row.cursor),
    attemptedThrough: Number(row.attemptedThrough),
    nextProbeAtMs: row.nextProbeAt?.getTime() ?? null,
    window: row.window,
    lastSequence: Number(row.lastSequence),
    fencing: Number(row.fencing),
    nextStartAtMs: row.nextStartAt?.getTime() ?? null,
  };
}
