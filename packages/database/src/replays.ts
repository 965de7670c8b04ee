/**
 * Replays of a webhook's log as its owner sees them: asked for, looked at, cancelled, and cleared away
 * when they are old. One replay of a webhook runs at a time.
 *
 * Its start and its cancelling leave an entry in the audit log each, in their own transaction.
 *
 * Statements find by the primary key; `startReplay` is held to one by `webhook_replays_running`. What is
 * read of the log: `replay-log.ts`. How one is drained: `replay-lanes.ts`.
 */
import type { AuditState } from '@sluice/domain/audit-registry';
import { sql } from 'kysely';
import type { ChangeOrigin } from './audit-logs.ts';
import type { Database, DatabaseOrTransaction, Transaction } from './connection.ts';
import type { AttemptRecord } from './lane-progress.ts';
import type { LaneKey } from './lanes.ts';
import { transactOnce } from './transact-once.ts';
import { recordWorkspaceChange } from './workspace-audit.ts';
import {
  countMatching,
  findSequenceBefore,
  type ReplayCriteria,
  type ReplayKey,
  type ReplaySearch,
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
  /** Where the call is in a trace; absent: in none. */
  readonly traceparent?: string | null;
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
  origin: ChangeOrigin,
  nowMs: number,
): Promise<ReplayStart> {
  const isStarted = ({ outcome }: ReplayStart): boolean => outcome === 'started';
  return transactOnce(database, origin.call, isStarted, async (transaction) => {
    const started = await start(transaction, lane, request, nowMs);
    if (started.outcome === 'started') {
      const { replayId } = started.replay;
      const { since, until, eventTypes, states, person } = request.criteria;
      const rate = request.ratePerSecond;
      const after = {
        since,
        until,
        event_types: eventTypes,
        states,
        person,
        rate_per_second: rate,
      };
      await record(transaction, { ...lane, replayId }, origin, null, after, nowMs);
    }
    return started;
  });
}

async function start(
  transaction: DatabaseOrTransaction,
  lane: LaneKey,
  request: ReplayRequest,
  nowMs: number,
): Promise<ReplayStart> {
  const plan = await measure(transaction, lane, request.criteria);
  if (!plan) return { outcome: 'not_found' };
  const { rows } = await sql<Replay>`
    with made as (
      insert into webhook_replays
        (environment_id, webhook_id, created_at, created_by, criteria, rate_per_second, total, through_sequence,
         cursor_sequence, endpoint, endpoint_version, traceparent)
      select environment_id, webhook_id, ${new Date(nowMs)}, ${request.createdBy}, ${JSON.stringify(plan.search)}::jsonb,
             ${request.ratePerSecond}::int, ${plan.isComplete ? plan.count : null}::bigint, ${plan.throughSequence}::bigint,
             ${plan.afterSequence}::bigint, endpoint, endpoint_version, ${request.traceparent ?? null}
        from webhooks
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and deleted_at is null
      on conflict (environment_id, webhook_id) where state = 'running' do nothing
      returning *
    )
    select ${COLUMNS} from made r`.execute(transaction);
  const [replay] = rows;
  return replay ? { outcome: 'started', replay, count: plan.count } : { outcome: 'running' };
}

async function measure(database: DatabaseOrTransaction, lane: LaneKey, criteria: ReplayCriteria) {
  const bounds = await findFinished(database, lane);
  if (!bounds) return undefined;
  const { throughSequence, heldBack } = bounds;
  const search: ReplaySearch = { ...criteria, heldBack };
  const afterSequence = await findSequenceBefore(database, lane, criteria.since, throughSequence);
  const range = { afterSequence, throughSequence };
  const counted = await countMatching(database, lane, search, range, COUNTED_ROWS_MAX);
  return { ...range, ...counted, search };
}

/**
 * Up to where deliveries were tried, and which of those are neither delivered nor abandoned: beyond the lane's cursor
 * some have ended beside others that hold it. In one statement, for both move on; by the primary keys.
 */
async function findFinished(
  database: DatabaseOrTransaction,
  lane: LaneKey,
): Promise<{ throughSequence: number; heldBack: number[] } | undefined> {
  const { rows } = await sql<{ through: string; heldBack: string[] }>`
    select attempted_sequence as through, array(
             select generate_series(cursor_sequence + 1, attempted_sequence)
             except
             select sequence from delivery_attempts a
              where a.environment_id = lanes.environment_id and a.webhook_id = lanes.webhook_id
                and a.sequence > cursor_sequence and a.sequence <= attempted_sequence and a.outcome <> 'retrying'
             order by 1) as "heldBack"
      from lanes
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}`.execute(
    database,
  );
  const [row] = rows;
  return row && { throughSequence: Number(row.through), heldBack: row.heldBack.map(Number) };
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
  database: Database,
  replay: ReplayKey,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<Replay | undefined> {
  return database.transaction().execute(async (transaction) => {
    const { rows } = await sql`
      update webhook_replays set state = 'cancelled', ended_at = ${new Date(nowMs)}
       where environment_id = ${replay.environmentId} and webhook_id = ${replay.webhookId} and replay_id = ${replay.replayId}
         and state = 'running'
      returning 1`.execute(transaction);
    if (rows.length > 0) await record(transaction, replay, origin, {}, { cancelled: true }, nowMs);
    return findReplay(transaction, replay);
  });
}

interface ProbedReplay {
  readonly replayId: number;
  readonly isHeld: boolean;
  readonly probeAt: Date;
}

/**
 * Makes the next probe of the webhook's replay due now, where one runs that fails; undefined where none does. By
 * `webhook_replays_running`.
 */
export async function probeReplayNow(
  transaction: Transaction,
  lane: LaneKey,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<'due' | 'in_progress' | undefined> {
  const now = new Date(nowMs);
  const { rows } = await sql<ProbedReplay>`
    with held as (
      select environment_id, webhook_id, replay_id, next_probe_at, coalesce(lease_until > clock_timestamp(), false) as is_held
        from webhook_replays
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and state = 'running'
         and lane_state = 'failing'
         for no key update
    ), due as (
      update webhook_replays r set next_probe_at = ${now}
        from held
       where r.environment_id = held.environment_id and r.webhook_id = held.webhook_id and r.replay_id = held.replay_id
         and held.next_probe_at > ${now}
    )
    select replay_id as "replayId", is_held as "isHeld", next_probe_at as "probeAt" from held`.execute(
    transaction,
  );
  const [row] = rows;
  if (!row) return undefined;
  if (row.probeAt > now) {
    const replay = { ...lane, replayId: row.replayId };
    const before = { next_attempt_at: row.probeAt };
    await record(transaction, replay, origin, before, { next_attempt_at: now }, nowMs);
  }
  return row.isHeld ? 'in_progress' : 'due';
}

async function record(
  transaction: Transaction,
  { environmentId, webhookId, replayId }: ReplayKey,
  origin: ChangeOrigin,
  before: AuditState<'replay'> | null,
  after: AuditState<'replay'>,
  nowMs: number,
): Promise<void> {
  const object = { objectType: 'replay', objectId: `${webhookId}/${replayId}` } as const;
  const change = { ...object, before, after };
  await recordWorkspaceChange(transaction, environmentId, origin, change, nowMs);
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
