/**
 * Operator actions on a delivery queue: probe now, skip its head, resend, test.
 *
 * Each is safe while a worker drains the lane: all take the lane's row lock, as the worker's own writes do. An action
 * that would contradict an attempt in progress is refused, not queued. The head is given up only if the lease is free,
 * and doing so takes a fencing number, so that a worker whose lease ran out meanwhile cannot write.
 *
 * A resend and a test are rows at the end of the log, tried once: a receiver that refuses them must not block later
 * deliveries. A lane of their own would let them overtake blocked deliveries. So a healthy lane sends them at once, and
 * a failing one after everything that it owes.
 * Each leaves one entry in the audit log at the end of its own transaction (`record-change.ts`), unless it changes no
 * row. Every statement uses a primary key, with environment_id first. Read side: `lane-states.ts`.
 */
import type { AuditState } from '@sluice/domain/accounts/audit-registry';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import type { ChangeOrigin } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { HEAD_SEQUENCE } from '../delivery/lane-snapshot.ts';
import { probeReplayNow } from './replays.ts';
import { transactOnce } from '../changes/transact-once.ts';
import { recordWorkspaceChange } from '../accounts/workspace-audit.ts';

/** True for a webhook. A feed has a lane too, but its events are only read. */
const isSentTo = sql`not exists (
        select from webhooks w
         where w.environment_id = lanes.environment_id and w.webhook_id = lanes.webhook_id and w.feed_name is not null)`;

export type ProbeOutcome =
  /** The lane's probe is due, or its replay's: wake the lane. */
  | 'due'
  /** A worker is at it: a retry probe is on its way or has ended just now. */
  | 'in_progress'
  /** Both are healthy, so a probe has no purpose. */
  | 'not_failing'
  | 'disabled'
  | 'not_found';

interface ProbedLane {
  readonly state: string;
  readonly isPaused: boolean;
  readonly isHeld: boolean;
  readonly head: string;
  readonly probeAt: Date | null;
}

/**
 * Makes the next retry probe of a failing lane due now, and the probe of the webhook's replay if one runs that fails.
 */
export async function probeNow(
  database: Database,
  lane: LaneKey,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<ProbeOutcome> {
  return database.transaction().execute(async (transaction): Promise<ProbeOutcome> => {
    const { rows } = await sql<ProbedLane>`
      select state, is_paused as "isPaused", coalesce(lease_until > clock_timestamp(), false) as "isHeld",
             ${HEAD_SEQUENCE} as head, next_probe_at as "probeAt"
        from lanes
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and ${isSentTo}
         for no key update`.execute(transaction);
    const [row] = rows;
    if (!row) return 'not_found';
    if (row.isPaused) return 'disabled';
    // First: the replay's row is locked before the audit log too.
    const replay = await probeReplayNow(transaction, lane, origin, nowMs);
    if (row.probeAt !== null && row.probeAt.getTime() > nowMs) {
      await sql`
        update lanes set next_probe_at = ${new Date(nowMs)}
         where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}`.execute(
        transaction,
      );
      const before = { next_attempt_at: row.probeAt };
      const after = { next_attempt_at: new Date(nowMs) };
      await recordOf(transaction, lane, Number(row.head), origin, before, after, nowMs);
    }
    if (row.state !== 'failing') return replay ?? 'not_failing';
    return row.isHeld ? 'in_progress' : 'due';
  });
}

export interface HeadSkip {
  /** The head as the operator saw it. */
  readonly sequence: number;
  /** The stored user and reason. */
  readonly note: string;
}

export type SkipOutcome =
  /** Given up, and blocked deliveries resume. Wake the lane. */
  | 'skipped'
  /** The lane is healthy, or its head has not failed. */
  | 'not_failing'
  /** Another delivery is the head. */
  | 'not_head'
  /** A worker is trying it now. */
  | 'in_progress'
  | 'not_found';

/**
 * Gives up the head of a failing lane, once: it counts as abandoned, and a row among its attempts names the user.
 * Deliveries that failed beside it are tried at once, within their hour too: a user who skips has looked at the
 * endpoint.
 */
export async function skipHead(
  database: Database,
  lane: LaneKey,
  skip: HeadSkip,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<SkipOutcome> {
  const isSkipped = (outcome: SkipOutcome): boolean => outcome === 'skipped';
  return transactOnce(
    database,
    origin.call,
    isSkipped,
    async (transaction): Promise<SkipOutcome> => {
      const { rows } = await sql<{ state: string; isHeld: boolean }>`
      select state, coalesce(lease_until > clock_timestamp(), false) as "isHeld" from lanes
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and ${isSentTo}
         for no key update`.execute(transaction);
      const [row] = rows;
      if (!row) return 'not_found';
      if (row.state !== 'failing') return 'not_failing';
      // Statements of their own, for they must see the attempts that were kept while the lock was waited for.
      if ((await findHead(transaction, lane)) !== skip.sequence) return 'not_head';
      if (row.isHeld) return 'in_progress';
      const { rows: given } = await sql`
      insert into delivery_attempts
        (environment_id, webhook_id, sequence, attempt, started_at, duration_ms, outcome, failure, failure_message)
      select environment_id, webhook_id, sequence, max(attempt) + 1, ${new Date(nowMs)}, 0, 'abandoned', 'skipped', ${skip.note}
        from delivery_attempts
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and sequence = ${skip.sequence}
       group by environment_id, webhook_id, sequence
      returning 1`.execute(transaction);
      if (given.length === 0) return 'not_failing';
      await sql`
      update lanes
         set state = 'healthy', next_probe_at = null, send_window = 1,
             cursor_sequence = case when cursor_sequence = ${skip.sequence - 1} then ${skip.sequence} else cursor_sequence end,
             attempted_sequence = greatest(attempted_sequence, ${skip.sequence}),
             fencing = fencing + 1, lease_until = null
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}`.execute(
        transaction,
      );
      const before = { state: 'retrying' };
      const after = { state: 'abandoned', note: skip.note };
      await recordOf(transaction, lane, skip.sequence, origin, before, after, nowMs);
      return 'skipped';
    },
  );
}

async function findHead(transaction: Transaction, lane: LaneKey): Promise<number> {
  const { rows } = await sql<{ head: string }>`
    select ${HEAD_SEQUENCE} as head from lanes
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}`.execute(
    transaction,
  );
  return Number(rows[0]?.head);
}

export type AppendOutcome =
  /** Logged as `sequence`: wake the lane. */
  | { readonly outcome: 'logged'; readonly sequence: number; readonly eventId: string }
  | { readonly outcome: 'disabled' | 'not_found' }
  /** It is not delivered or abandoned yet, so it will be sent anyway. */
  | { readonly outcome: 'not_finished' };

/** Logs a delivery of the same event, byte for byte, as one to be tried once. */
export async function appendResend(
  database: Database,
  lane: LaneKey,
  sequence: number,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<AppendOutcome> {
  return transactOnce(database, origin.call, isLogged, async (transaction) => {
    const refusal = await lockForAppend(transaction, lane);
    if (refusal) return refusal;
    const { rows } = await sql<{ isFinished: boolean }>`
      select exists (
          select from delivery_attempts a
           where a.environment_id = log.environment_id and a.webhook_id = log.webhook_id
             and a.sequence = log.sequence and a.outcome <> 'retrying') as "isFinished"
        from delivery_log log
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and sequence = ${sequence}`.execute(
      transaction,
    );
    const [row] = rows;
    if (!row) return { outcome: 'not_found' };
    if (!row.isFinished) return { outcome: 'not_finished' };
    return append(
      transaction,
      lane,
      sql`
        select 'resend', coalesce(resend_of, sequence), event_id, event_type, occurred_at, body from delivery_log
         where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and sequence = ${sequence}`,
      origin,
      nowMs,
    );
  });
}

export interface TestDelivery {
  readonly eventId: string;
  readonly eventType: string;
  readonly occurredAtMs: number;
  readonly body: string;
}

/** Logs something that did not happen, to be tried once. */
export async function appendTest(
  database: Database,
  lane: LaneKey,
  test: TestDelivery,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<AppendOutcome> {
  return transactOnce(database, origin.call, isLogged, async (transaction) => {
    const refusal = await lockForAppend(transaction, lane);
    if (refusal) return refusal;
    return append(
      transaction,
      lane,
      sql`
        select 'test', null::bigint, ${test.eventId}, ${test.eventType}, ${new Date(test.occurredAtMs)}::timestamptz,
               ${test.body}`,
      origin,
      nowMs,
    );
  });
}

const isLogged = ({ outcome }: AppendOutcome): boolean => outcome === 'logged';

/** A disabled webhook gets no request, and a test must not wait there until it is enabled. */
async function lockForAppend(
  transaction: DatabaseOrTransaction,
  lane: LaneKey,
): Promise<AppendOutcome | undefined> {
  const { rows } = await sql<{ isPaused: boolean }>`
    select is_paused as "isPaused" from lanes
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and ${isSentTo}
       for no key update`.execute(transaction);
  const [row] = rows;
  if (!row) return { outcome: 'not_found' };
  return row.isPaused ? { outcome: 'disabled' } : undefined;
}

interface AppendedDelivery {
  readonly sequence: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly origin: string;
  readonly resendOf: string | null;
}

/** Takes the next sequence as `appendDeliveries` does; the lane is locked. */
async function append(
  transaction: Transaction,
  lane: LaneKey,
  delivery: ReturnType<typeof sql>,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<AppendOutcome> {
  const { rows } = await sql<AppendedDelivery>`
    with advanced as (
      update lanes set last_sequence = last_sequence + 1
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
      returning environment_id, webhook_id, last_sequence
    )
    insert into delivery_log
      (environment_id, webhook_id, sequence, origin, resend_of, event_id, event_type, occurred_at, body)
    select environment_id, webhook_id, last_sequence, d.* from advanced, (${delivery}) d
    returning sequence, event_id as "eventId", event_type as "eventType", origin, resend_of as "resendOf"`.execute(
    transaction,
  );
  const made = rows[0] as (typeof rows)[number];
  const sequence = Number(made.sequence);
  const { eventId } = made;
  const after = {
    origin: made.origin,
    resend_of: made.resendOf === null ? null : Number(made.resendOf),
    event_id: eventId,
    event_type: made.eventType,
  };
  await recordOf(transaction, lane, sequence, origin, null, after, nowMs);
  return { outcome: 'logged', sequence, eventId };
}

/** A delivery is named as in the API's paths: by its webhook and its sequence. */
async function recordOf(
  transaction: Transaction,
  { environmentId, webhookId }: LaneKey,
  sequence: number,
  origin: ChangeOrigin,
  before: AuditState<'delivery'> | null,
  after: AuditState<'delivery'>,
  nowMs: number,
): Promise<void> {
  const object = { objectType: 'delivery', objectId: `${webhookId}/${sequence}` } as const;
  const change = { ...object, before, after };
  await recordWorkspaceChange(transaction, environmentId, origin, change, nowMs);
}
