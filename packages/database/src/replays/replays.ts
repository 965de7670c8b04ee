/**
 * Replays of a webhook's log as its owner sees them.
 *
 * The owner reads, cancels and probes them; old ones are cleared away. Each change leaves an entry in the audit log, in
 * its own transaction.
 *
 * Statements use the primary key. The start is in `replay-start.ts`, the reading of the log in `replay-log.ts`, the
 * drain in `replay-lanes.ts`.
 */
import type { AuditState } from '@sluice/domain/accounts/audit-registry';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import type { ChangeOrigin } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import type { AttemptRecord } from '../delivery/lane-progress.ts';
import type { ReplayCriteria, ReplayKey } from './replay-log.ts';
import { recordWorkspaceChange } from '../accounts/workspace-audit.ts';

export interface Replay {
  readonly replayId: number;
  readonly state: 'running' | 'done' | 'cancelled';
  readonly isFailing: boolean;
  readonly nextProbeAt: Date | null;
  readonly criteria: ReplayCriteria;
  readonly ratePerSecond: number;
  /** Null if they were too many to count. */
  readonly total: number | null;
  readonly delivered: number;
  readonly abandoned: number;
  readonly createdAt: Date;
  readonly createdBy: string;
  readonly endedAt: Date | null;
}

/** Of `webhook_replays r`. */
export const REPLAY = sql`
  replay_id as "replayId", r.state, r.lane_state = 'failing' as "isFailing", r.next_probe_at as "nextProbeAt", criteria,
  rate_per_second as "ratePerSecond", total::float8 as total, delivered_count::float8 as delivered,
  abandoned_count::float8 as abandoned, r.created_at as "createdAt", created_by as "createdBy", ended_at as "endedAt"`;

/** Newest first. */
export async function listReplays(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  limit: number,
): Promise<Replay[]> {
  const { rows } = await sql<Replay>`
    select ${REPLAY} from webhook_replays r
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
     order by replay_id desc limit ${limit}`.execute(database);
  return rows;
}

/** Also undefined if the webhook is deleted. */
export async function findReplay(
  database: DatabaseOrTransaction,
  replay: ReplayKey,
): Promise<Replay | undefined> {
  const { rows } = await sql<Replay>`
    select ${REPLAY} from webhook_replays r join lanes using (environment_id, webhook_id)
     where environment_id = ${replay.environmentId} and webhook_id = ${replay.webhookId} and replay_id = ${replay.replayId}`.execute(
    database,
  );
  return rows[0];
}

/** Starts no more deliveries; deliveries in progress end and are kept. One that has ended stays as it is. */
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
    if (rows.length > 0)
      await recordReplayChange(transaction, replay, origin, {}, { cancelled: true }, nowMs);
    return findReplay(transaction, replay);
  });
}

interface ProbedReplay {
  readonly replayId: number;
  readonly isHeld: boolean;
  readonly probeAt: Date;
}

/**
 * Makes the next retry probe of the webhook's replay due now, if one runs that fails; else undefined. By
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
    await recordReplayChange(transaction, replay, origin, before, { next_attempt_at: now }, nowMs);
  }
  return row.isHeld ? 'in_progress' : 'due';
}

/** Leaves its entry in the audit log. `before` is null if it is started. */
export async function recordReplayChange(
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
