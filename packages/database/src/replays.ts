/**
 * Replays of a webhook's log: asked for, looked at and cancelled by its owner; claimed and moved on
 * by whoever drains one.
 *
 * A replay's lease and fencing are those of a lane (`lanes.ts`). Its cursor is two numbers: a
 * position, counted among the deliveries that match, which is what the rules of a lane want without
 * gaps, and the sequence in the log where the reading goes on. One replay of a webhook runs at a time.
 *
 * Statements find by the primary key, but for `claimReplay`, which reads the partial index of those
 * that run. What is read of the log: `replay-log.ts`.
 */
import { AppError } from '@sluice/domain/errors';
import type { LaneSnapshot } from '@sluice/domain/lane';
import { sql } from 'kysely';
import type { Database, DatabaseOrTransaction } from './connection.ts';
import { TARGET, targetOf, type AttemptRecord, type LaneKey, type LaneTarget } from './lanes.ts';
import {
  countMatching,
  findSequenceBefore,
  type ReplayCriteria,
  type ReplayKey,
} from './replay-log.ts';

export interface Replay {
  readonly replayId: number;
  readonly state: 'running' | 'done' | 'cancelled';
  readonly isFailing: boolean;
  readonly nextProbeAt: Date | null;
  readonly criteria: ReplayCriteria;
  readonly ratePerSecond: number;
  /** Null where they were too many to count. */
  readonly total: number | null;
  readonly delivered: number;
  readonly abandoned: number;
  readonly createdAt: Date;
  readonly createdBy: string;
  readonly endedAt: Date | null;
}

const COLUMNS = sql`
  replay_id as "replayId", r.state, r.lane_state = 'failing' as "isFailing", r.next_probe_at as "nextProbeAt", criteria,
  rate_per_second as "ratePerSecond", total::float8 as total, delivered_count::float8 as delivered,
  abandoned_count::float8 as abandoned, r.created_at as "createdAt", created_by as "createdBy", ended_at as "endedAt"`;

export interface ReplayRequest {
  readonly criteria: ReplayCriteria;
  readonly ratePerSecond: number;
  readonly createdBy: string;
}

export type ReplayPlan =
  | { readonly outcome: 'counted'; readonly count: number; readonly isComplete: boolean }
  | { readonly outcome: 'not_found' };

export type ReplayStart =
  | { readonly outcome: 'started'; readonly replay: Replay; readonly count: number }
  /** Another one is running. */
  | { readonly outcome: 'running' }
  | { readonly outcome: 'not_found' };

/** How many rows are looked at to count: about half a second. */
const COUNTED_ROWS_MAX = 500_000;

/** What a replay would send, of what is delivered or abandoned now. */
export async function planReplay(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  criteria: ReplayCriteria,
): Promise<ReplayPlan> {
  const plan = await measure(database, lane, criteria);
  return plan ? { outcome: 'counted', ...plan } : { outcome: 'not_found' };
}

/** Starts it; a worker finds it within a second. */
export async function startReplay(
  database: Database,
  lane: LaneKey,
  request: ReplayRequest,
  nowMs: number,
): Promise<ReplayStart> {
  const plan = await measure(database, lane, request.criteria);
  if (!plan) return { outcome: 'not_found' };
  const { rows } = await sql<Replay>`
    with made as (
      insert into webhook_replays
        (environment_id, webhook_id, created_at, created_by, criteria, rate_per_second, total, through_sequence,
         cursor_sequence, endpoint)
      select environment_id, webhook_id, ${new Date(nowMs)}, ${request.createdBy}, ${JSON.stringify(request.criteria)}::jsonb,
             ${request.ratePerSecond}::int, ${plan.isComplete ? plan.count : null}::bigint, ${plan.throughSequence}::bigint,
             ${plan.afterSequence}::bigint, endpoint
        from webhooks
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and deleted_at is null
      on conflict (environment_id, webhook_id) where state = 'running' do nothing
      returning *
    )
    select ${COLUMNS} from made r`.execute(database);
  const [replay] = rows;
  return replay ? { outcome: 'started', replay, count: plan.count } : { outcome: 'running' };
}

async function measure(database: DatabaseOrTransaction, lane: LaneKey, criteria: ReplayCriteria) {
  const { rows } = await sql<{ through: string }>`
    select cursor_sequence as through from lanes
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}`.execute(
    database,
  );
  const [row] = rows;
  if (!row) return undefined;
  const throughSequence = Number(row.through);
  const afterSequence = await findSequenceBefore(database, lane, criteria.since, throughSequence);
  const range = { afterSequence, throughSequence };
  return { ...range, ...(await countMatching(database, lane, criteria, range, COUNTED_ROWS_MAX)) };
}

/** Newest first. */
export async function listReplays(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  limit: number,
): Promise<Replay[]> {
  const { rows } = await sql<Replay>`
    select ${COLUMNS} from webhook_replays r
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
     order by replay_id desc limit ${limit}`.execute(database);
  return rows;
}

/** Undefined also where the webhook is deleted. */
export async function findReplay(
  database: DatabaseOrTransaction,
  replay: ReplayKey,
): Promise<Replay | undefined> {
  const { rows } = await sql<Replay>`
    select ${COLUMNS} from webhook_replays r join lanes using (environment_id, webhook_id)
     where environment_id = ${replay.environmentId} and webhook_id = ${replay.webhookId} and replay_id = ${replay.replayId}`.execute(
    database,
  );
  return rows[0];
}

/** Starts nothing more; what is on its way ends and is kept. One that has ended stays as it is. */
export async function cancelReplay(
  database: DatabaseOrTransaction,
  replay: ReplayKey,
  nowMs: number,
): Promise<Replay | undefined> {
  await sql`
    update webhook_replays set state = 'cancelled', ended_at = ${new Date(nowMs)}
     where environment_id = ${replay.environmentId} and webhook_id = ${replay.webhookId} and replay_id = ${replay.replayId}
       and state = 'running'`.execute(database);
  return findReplay(database, replay);
}

/** All attempts of a replay after a place, in order of the log; by the primary key. */
export async function listAttemptsOfReplay(
  database: DatabaseOrTransaction,
  replay: ReplayKey,
  after: { readonly sequence: number; readonly attempt: number },
  limit: number,
): Promise<AttemptRecord[]> {
  const { rows } = await sql<
    Omit<AttemptRecord, 'sequence' | 'startedAtMs'> & { sequence: string; startedAt: Date }
  >`
    select sequence, attempt, started_at as "startedAt", duration_ms as "durationMs", status, outcome, failure,
           failure_message as "failureMessage", response_head as "responseHead", response_body as "responseBody"
      from replay_attempts
     where environment_id = ${replay.environmentId} and webhook_id = ${replay.webhookId} and replay_id = ${replay.replayId}
       and (sequence, attempt) > (${after.sequence}, ${after.attempt})
     order by sequence, attempt limit ${limit}`.execute(database);
  return rows.map(({ startedAt, sequence, ...row }) => ({
    ...row,
    sequence: Number(sequence),
    startedAtMs: startedAt.getTime(),
  }));
}

/** Clears replays away that ended before a time, with their attempts; at most `limit`. */
export async function clearReplays(
  database: DatabaseOrTransaction,
  endedBeforeMs: number,
  limit: number,
): Promise<void> {
  await sql`
    delete from webhook_replays r using (
      select environment_id, webhook_id, replay_id from webhook_replays
       where ended_at < ${new Date(endedBeforeMs)} limit ${limit}) old
     where r.environment_id = old.environment_id and r.webhook_id = old.webhook_id and r.replay_id = old.replay_id`.execute(
    database,
  );
}

export interface ClaimedReplay extends ReplayKey, LaneSnapshot, LaneTarget {
  readonly accountId: number;
  readonly fencing: number;
  readonly criteria: ReplayCriteria;
  readonly throughSequence: number;
  /** Of the log: everything that matches up to here is done with. */
  readonly cursorSequence: number;
  readonly nextStartAtMs: number | null;
}

/** Takes the lease of a replay that has something to send now, if there is one; those of disabled webhooks wait. */
export async function claimReplay(
  database: DatabaseOrTransaction,
  leaseMs: number,
  nowMs: number,
): Promise<ClaimedReplay | undefined> {
  const now = new Date(nowMs);
  const { rows } = await sql<
    LaneTarget &
      ReplayKey & {
        accountId: number;
        fencing: string;
        criteria: ReplayCriteria;
        throughSequence: string;
        cursorSequence: string;
        position: string;
        attempted: string;
        laneState: LaneSnapshot['state'];
        nextProbeAt: Date | null;
        nextStartAt: Date | null;
        window: number;
        replayRate: number;
      }
  >`
    with due as (
      select r.environment_id, r.webhook_id, r.replay_id
        from webhook_replays r
        join lanes on lanes.environment_id = r.environment_id and lanes.webhook_id = r.webhook_id and not lanes.is_paused
        join webhooks on webhooks.environment_id = r.environment_id and webhooks.webhook_id = r.webhook_id
       where r.state = 'running' and (r.lease_until is null or r.lease_until <= clock_timestamp())
         and (r.next_probe_at is null or r.next_probe_at <= ${now} or r.endpoint <> webhooks.endpoint)
         and (r.next_start_at is null or r.next_start_at <= ${now})
       order by r.next_start_at nulls first limit 1
         for update of r skip locked
    )
    update webhook_replays r
       set fencing = r.fencing + 1, lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond',
           -- A changed endpoint is probed now.
           next_probe_at = case when r.next_probe_at is null then null else least(r.next_probe_at, ${now}) end, endpoint = webhooks.endpoint
      from due join webhooks using (environment_id, webhook_id) join environments using (environment_id)
     where r.environment_id = due.environment_id and r.webhook_id = due.webhook_id and r.replay_id = due.replay_id
    returning environments.account_id::float8 as "accountId", r.environment_id as "environmentId", r.webhook_id as "webhookId", r.replay_id as "replayId", r.fencing,
              r.criteria, r.through_sequence as "throughSequence", r.cursor_sequence as "cursorSequence",
              r.cursor_position as position, r.attempted_position as attempted, r.lane_state as "laneState",
              r.next_probe_at as "nextProbeAt",
              r.next_start_at as "nextStartAt", r.send_window as "window", r.rate_per_second as "replayRate", ${TARGET}`.execute(
    database,
  );
  const [row] = rows;
  if (!row) return undefined;
  const { accountId, environmentId, webhookId, replayId, criteria, laneState, window } = row;
  return {
    accountId,
    environmentId,
    webhookId,
    replayId,
    criteria,
    window,
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
  /** Nothing is left to be sent. */
  readonly isDone: boolean;
}

export interface ReplayAfterProgress extends LaneTarget {
  /** Nothing more may be started: cancelled, or the webhook is disabled. */
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
           cursor_sequence = ${progress.cursorSequence}, send_window = ${snapshot.window},
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
  if (replayRate <= 0) throw new AppError('BUG', 'a replay has no rate');
  return webhookRate === null ? replayRate : Math.min(replayRate, webhookRate);
}
