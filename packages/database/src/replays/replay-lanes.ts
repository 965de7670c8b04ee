/**
 * A replay as it is drained: claimed, and moved on.
 *
 * Its lease and fencing are like a lane's (`lanes.ts`). Its cursor is two numbers. A position counts the matching
 * deliveries, without gaps, as the rules of a lane need it. A sequence is the place in the log at which the reading
 * goes on.
 *
 * `claimReplay` reads the partial index of running replays; the other statements use the primary key.
 */
import type { LaneSnapshot } from '@sluice/domain/delivery/lane';
import { sql } from 'kysely';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { TARGET, targetOf, type LaneTarget } from '../delivery/lane-target.ts';
import { IS_OPEN, NEXT_START_AHEAD_MS_MAX, unbelievedProbeAt } from '../delivery/lanes.ts';
import type { AttemptRecord } from '../delivery/lane-progress.ts';
import type { ReplayKey, ReplaySearch } from './replay-log.ts';

export interface ClaimedReplay extends ReplayKey, LaneSnapshot, LaneTarget {
  readonly accountId: number;
  readonly fencing: number;
  readonly criteria: ReplaySearch;
  readonly throughSequence: number;
  /** Of the log: everything that matches up to here is done with. */
  readonly cursorSequence: number;
  readonly nextStartAtMs: number | null;
  /** Of the call that asked for it. */
  readonly traceparent: string | null;
}

/**
 * Takes the lease of a replay that has something to send now, if there is one. Replays of disabled webhooks, and of
 * workspaces that are not open, wait.
 */
export async function claimReplay(
  database: DatabaseOrTransaction,
  leaseMs: number,
  nowMs: number,
  probeWaitMsMax: number,
): Promise<ClaimedReplay | undefined> {
  const now = new Date(nowMs);
  const { rows } = await sql<
    LaneTarget &
      ReplayKey & {
        accountId: number;
        fencing: string;
        criteria: ReplaySearch;
        throughSequence: string;
        cursorSequence: string;
        position: string;
        attempted: string;
        laneState: LaneSnapshot['state'];
        nextProbeAt: Date | null;
        nextStartAt: Date | null;
        concurrencyLimit: number;
        replayRate: number;
        traceparent: string | null;
      }
  >`${PREPARED}
    with due as (
      select r.environment_id, r.webhook_id, r.replay_id
        from webhook_replays r
        join lanes on lanes.environment_id = r.environment_id and lanes.webhook_id = r.webhook_id and not lanes.is_paused
        join webhooks on webhooks.environment_id = r.environment_id and webhooks.webhook_id = r.webhook_id
        join environments on environments.environment_id = r.environment_id
        join accounts on accounts.account_id = environments.account_id and ${IS_OPEN}
       where r.state = 'running' and (r.lease_until is null or r.lease_until <= clock_timestamp())
         and (r.next_probe_at is null or r.next_probe_at <= ${now} or r.endpoint_version <> webhooks.endpoint_version
              or r.next_probe_at > ${unbelievedProbeAt(nowMs, probeWaitMsMax)})
         and (r.next_start_at is null or r.next_start_at <= ${now}
              or r.next_start_at > ${new Date(nowMs + NEXT_START_AHEAD_MS_MAX)})
       order by r.next_start_at nulls first limit 1
         for update of r skip locked
    )
    update webhook_replays r
       set fencing = r.fencing + 1, lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond',
           -- Where the webhook was sent elsewhere or enabled, it is probed now, and what a clock that was far ahead put off.
           next_probe_at = case when r.next_probe_at is null then null else least(r.next_probe_at, ${now}) end,
           endpoint = webhooks.endpoint, endpoint_version = webhooks.endpoint_version
      from due join webhooks using (environment_id, webhook_id) join environments using (environment_id)
     where r.environment_id = due.environment_id and r.webhook_id = due.webhook_id and r.replay_id = due.replay_id
    returning environments.account_id::float8 as "accountId", r.environment_id as "environmentId", r.webhook_id as "webhookId", r.replay_id as "replayId", r.fencing,
              r.criteria, r.through_sequence as "throughSequence", r.cursor_sequence as "cursorSequence",
              r.cursor_position as position, r.attempted_position as attempted, r.lane_state as "laneState",
              r.next_probe_at as "nextProbeAt",
              r.next_start_at as "nextStartAt", r.send_window as "concurrencyLimit", r.rate_per_second as "replayRate",
              r.traceparent, ${TARGET}`.execute(database);
  const [row] = rows;
  if (!row) return undefined;
  const {
    accountId,
    environmentId,
    webhookId,
    replayId,
    criteria,
    laneState,
    concurrencyLimit,
    traceparent,
  } = row;
  return {
    accountId,
    environmentId,
    webhookId,
    replayId,
    criteria,
    concurrencyLimit,
    traceparent,
    ...targetOf(row),
    rateLimitPerSecond: slower(row.replayRate, row.rateLimitPerSecond),
    fencing: Number(row.fencing),
    throughSequence: Number(row.throughSequence),
    cursorSequence: Number(row.cursorSequence),
    state: laneState,
    cursor: Number(row.position),
    attemptedThrough: Number(row.attempted),
    nextProbeAtMs: row.nextProbeAt?.getTime() ?? null,
    nextStartAtMs: row.nextStartAt?.getTime() ?? null,
  };
}

export interface ReplayProgress {
  readonly snapshot: LaneSnapshot;
  /** By their sequence in the log. */
  readonly attempts: readonly AttemptRecord[];
  readonly cursorSequence: number;
  readonly nextStartAtMs: number | null;
  readonly isLast: boolean;
  /** All deliveries have been sent. */
  readonly isDone: boolean;
}

export interface ReplayAfterProgress extends LaneTarget {
  /** No delivery may be started any more: cancelled, or the webhook is disabled. */
  readonly isPaused: boolean;
  readonly leaseLeftMs: number;
}

/** As `recordProgress` of `lanes.ts`: attempts, counts and cursor in one statement, which may be repeated. */
export async function recordReplayProgress(
  database: DatabaseOrTransaction,
  replay: ReplayKey,
  fencing: number,
  progress: ReplayProgress,
  leaseMs: number,
  nowMs: number,
): Promise<ReplayAfterProgress | undefined> {
  const { snapshot, attempts } = progress;
  const dateOf = (ms: number | null) => (ms === null ? null : new Date(ms));
  const { rows } = await sql<LaneTarget & { isPaused: boolean; leaseLeftMs: number | null }>`
    with held as (
      select environment_id, webhook_id, replay_id from webhook_replays
       where environment_id = ${replay.environmentId} and webhook_id = ${replay.webhookId}
         and replay_id = ${replay.replayId} and fencing = ${fencing}
         for no key update
    ), kept as (
      insert into replay_attempts
        (environment_id, webhook_id, replay_id, sequence, attempt, started_at, duration_ms, status, outcome, failure,
         failure_message, response_head, response_body)
      select held.environment_id, held.webhook_id, held.replay_id, a.*
        from held, unnest(
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
      -- Only a repetition finds its rows there, and counts nothing twice.
      on conflict do nothing
      returning outcome
    ), counted as (
      select count(*) filter (where outcome = 'delivered') as delivered,
             count(*) filter (where outcome = 'abandoned') as abandoned from kept
    )
    update webhook_replays r
       set lane_state = ${snapshot.state}, next_probe_at = ${dateOf(snapshot.nextProbeAtMs)},
           cursor_position = ${snapshot.cursor}, attempted_position = ${snapshot.attemptedThrough},
           cursor_sequence = ${progress.cursorSequence}, send_window = ${snapshot.concurrencyLimit},
           next_start_at = ${dateOf(progress.nextStartAtMs)},
           delivered_count = delivered_count + counted.delivered, abandoned_count = abandoned_count + counted.abandoned,
           state = case when r.state = 'running' and ${progress.isDone} then 'done' else r.state end,
           ended_at = case when r.state = 'running' and ${progress.isDone} then ${new Date(nowMs)} else r.ended_at end,
           lease_until = case when ${progress.isLast} then null
                              else clock_timestamp() + ${leaseMs} * interval '1 millisecond' end
      from held, counted, webhooks, lanes
     where r.environment_id = held.environment_id and r.webhook_id = held.webhook_id and r.replay_id = held.replay_id
       and webhooks.environment_id = r.environment_id and webhooks.webhook_id = r.webhook_id
       and lanes.environment_id = r.environment_id and lanes.webhook_id = r.webhook_id
    returning r.state <> 'running' or lanes.is_paused as "isPaused",
              (extract(epoch from r.lease_until - clock_timestamp()) * 1000)::float8 as "leaseLeftMs", ${TARGET}`.execute(
    database,
  );
  const [row] = rows;
  return row && { ...targetOf(row), isPaused: row.isPaused, leaseLeftMs: row.leaseLeftMs ?? 0 };
}

function slower(replayRate: number, webhookRate: number | null): number {
  return webhookRate === null ? replayRate : Math.min(replayRate, webhookRate);
}
