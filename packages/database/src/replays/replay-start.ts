/**
 * Preview and start of a replay of a webhook's log. One replay of a webhook runs at a time.
 *
 * Its start leaves an entry in the audit log, in its own transaction.
 *
 * `webhook_replays_running` holds `startReplay` to one. `replay-log.ts` reads the log. After it: `replays.ts`.
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import type { ChangeOrigin } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';
import {
  countMatching,
  findSequenceBefore,
  type MatchCount,
  type ReplayCriteria,
  type ReplaySearch,
} from './replay-log.ts';
import { recordReplayChange, REPLAY, type Replay } from './replays.ts';
import { transactOnce } from '../changes/transact-once.ts';

export interface ReplayRequest {
  readonly criteria: ReplayCriteria;
  readonly ratePerSecond: number;
  readonly createdBy: string;
  /** Position of the call in a trace. Absent: it is not traced. */
  readonly traceparent?: string | null;
}

export type ReplayPlan =
  | ({ readonly outcome: 'counted' } & MatchCount)
  | { readonly outcome: 'not_found' };

export type ReplayStart =
  | { readonly outcome: 'started'; readonly replay: Replay; readonly count: number }
  /** Another one is running. */
  | { readonly outcome: 'running' }
  | { readonly outcome: 'not_found' };

/** How many rows are looked at to count: about half a second. */
const COUNTED_ROWS_MAX = 500_000;

/** The deliveries that a replay would send: delivered or abandoned ones, at this moment. */
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
      await recordReplayChange(transaction, { ...lane, replayId }, origin, null, after, nowMs);
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
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and feed_name is null and deleted_at is null
      on conflict (environment_id, webhook_id) where state = 'running' do nothing
      returning *
    )
    select ${REPLAY} from made r`.execute(transaction);
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
 * The end of the deliveries that were tried, and the ones among them that are neither delivered nor abandoned: beyond
 * the lane's cursor some have ended beside others that hold it. In one statement, for both move on; by the primary
 * keys. Undefined for a feed too: its consumer reads it.
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
     where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
       and exists (select from webhooks w
                    where w.environment_id = lanes.environment_id and w.webhook_id = lanes.webhook_id
                      and w.feed_name is null and w.deleted_at is null)`.execute(database);
  const [row] = rows;
  return row && { throughSequence: Number(row.through), heldBack: row.heldBack.map(Number) };
}
