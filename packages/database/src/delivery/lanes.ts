/**
 * Lanes: the progress of each webhook's log, and the worker that sends it.
 *
 * A lane is drained by the holder of its lease. Claiming makes the fencing number one higher, and every write of a
 * drain names its number, so a worker that lost its lease cannot write. Lease times are by the database's clock, which
 * all workers share; probe times are by the workers' clock, an argument.
 *
 * One statement takes claims and progress of many lanes, because its cost is nearly the same for any number. It locks
 * them in order of their key, as in `appendDeliveries`, so that there are no deadlocks. It finds them by the primary
 * key (environment_id, webhook_id), except `listLanesToWake` (partial index `lanes_to_wake`).
 *
 * Used by `worker/src/delivery/deliver-webhook.ts` (step 11) and `worker/src/maintenance/reconcile-lanes.ts`. After it:
 * `lane-progress.ts`.
 */
import type { LaneSnapshot } from '@sluice/domain/delivery/lane';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { LaneRange } from '@sluice/domain/wake-ups/lane-ranges';
import { sql, type RawBuilder } from 'kysely';
import { integerColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { SNAPSHOT, snapshotOf, type LaneRow } from './lane-snapshot.ts';
import { TARGET, targetOf, type LaneTarget } from './lane-target.ts';

export interface ClaimedLane extends LaneSnapshot, LaneTarget {
  /** Whose it is: workers are shared between accounts. */
  readonly accountId: number;
  /** The day of the delivery after the cursor, or an earlier one; null if it is not known. */
  readonly readFromDay: string | null;
  readonly fencing: number;
  readonly lastSequence: number;
  /** No request before it; null if there is no rate limit, or no earlier request counts. */
  readonly nextStartAtMs: number | null;
}

/** A condition on a joined workspace and its account: both are open. Otherwise their lanes send no request. */
export const IS_OPEN = sql`(environments.deleted_at is null and accounts.status <> 'closed')`;

/**
 * Of a joined lane that this statement changes, and its webhook. False if the statement waited for a transaction that
 * sent the webhook elsewhere, or enabled it. Then the lane is as it is now, and the webhook still as it was.
 */
export const IS_WEBHOOK_CURRENT = sql`(lanes.endpoint_version = webhooks.endpoint_version)`;

/** A lane to be claimed. */
export interface LaneClaim {
  readonly lane: LaneKey;
  readonly leaseMs: number;
  /** Of the worker process that claims it: when that is killed, its lanes are released (`worker-processes.ts`). */
  readonly holderProcessId?: number;
}

/**
 * A rate is at least one a second, so the next start is at most a second away. A time further away was written by a
 * clock that was ahead, and is not waited for. Smaller differences between clocks are accepted.
 */
export const NEXT_START_AHEAD_MS_MAX = 60_000;

/** As long as a retry probe may be put off, by the widest settings. */
export const PROBE_WAIT_MS_MAX = 7 * 86_400_000;
/** Smaller differences between clocks are accepted: they must not cut short the hour after a listed failure. */
const CLOCK_AHEAD_MS_MAX = 600_000;

/**
 * A retry probe later than this was put off by a clock far ahead, and is due now.
 *
 * @param probeWaitMsMax - the longest that the policy puts off a retry probe.
 */
export const unbelievedProbeAt = (nowMs: number, probeWaitMsMax: number): Date =>
  new Date(nowMs + probeWaitMsMax + CLOCK_AHEAD_MS_MAX);

/**
 * Takes the leases of lanes that have something to send now: not paused, not held by another, not waiting for a later
 * retry probe, and of a workspace that is open. Undefined in the place of the others; `findLane` returns the reason. It
 * finds no reason if the webhook was sent elsewhere at this moment; such a lane may be claimed again at once. A lane
 * that is asked for twice is given once.
 */
export async function claimLanes(
  database: DatabaseOrTransaction,
  claims: readonly LaneClaim[],
  nowMs: number,
  probeWaitMsMax: number,
): Promise<(ClaimedLane | undefined)[]> {
  const { rows } = await sql<ClaimedRow>`${PREPARED}
    with asked as (
      select * from unnest(
        ${integerColumn(claims, ({ lane }) => lane.environmentId)}::int[],
        ${integerColumn(claims, ({ lane }) => lane.webhookId)}::int[],
        ${integerColumn(claims, ({ leaseMs }) => leaseMs)}::int[],
        ${integerColumn(claims, ({ holderProcessId = 0 }) => holderProcessId)}::int[]
      ) as a (environment_id, webhook_id, lease_ms, holder_process_id)
    ), free as (
      select environment_id, webhook_id, lease_ms, asked.holder_process_id
        from lanes join asked using (environment_id, webhook_id)
       where ${isDue(nowMs, probeWaitMsMax)}
       ${lockedAndClaimed(nowMs)}`.execute(database);
  const claimed = new Map(rows.map((row) => [nameOf(row), row]));
  return claims.map(({ lane }) => {
    const name = nameOf(lane);
    const row = claimed.get(name);
    claimed.delete(name);
    return row && claimedOf(row);
  });
}

/** A range of lanes to be claimed, and for whom. */
export interface LaneRangeClaim extends Omit<LaneClaim, 'lane'> {
  readonly range: LaneRange;
}

/** A lane that was claimed with its range. */
export type FoundLane = LaneKey & ClaimedLane;

/**
 * Takes the leases of the lanes of a range that have something to send now, as `claimLanes` does. Lanes that are
 * paused, held, or wait for a retry probe are left out. One that waits for its rate is taken too: the drain that finds
 * it waiting sets the timer of its wake-up. By the primary key, at most as many rows as a range is wide.
 */
export async function claimLaneRange(
  database: DatabaseOrTransaction,
  { range, leaseMs, holderProcessId = 0 }: LaneRangeClaim,
  nowMs: number,
  probeWaitMsMax: number,
): Promise<FoundLane[]> {
  const { environmentId, firstWebhookId, lastWebhookId } = range;
  const { rows } = await sql<ClaimedRow>`${PREPARED}
    with free as (
      select environment_id, webhook_id, ${leaseMs}::int as lease_ms, ${holderProcessId}::int as holder_process_id
        from lanes
       where environment_id = ${environmentId} and webhook_id between ${firstWebhookId} and ${lastWebhookId}
         and ${hasWork(nowMs, probeWaitMsMax)}
       ${lockedAndClaimed(nowMs)}`.execute(database);
  return rows.map((row) => {
    const { environmentId: ofEnvironment, webhookId } = row;
    return { environmentId: ofEnvironment, webhookId, ...claimedOf(row) };
  });
}

/**
 * Lanes of a range with work and no holder. If `claimLaneRange` leaves one out, its workspace is not open, or its webhook was sent
 * elsewhere at this moment. By the primary key.
 */
export async function listDueLanes(
  database: DatabaseOrTransaction,
  { environmentId, firstWebhookId, lastWebhookId }: LaneRange,
  nowMs: number,
  probeWaitMsMax: number,
): Promise<LaneKey[]> {
  const { rows } = await sql<LaneKey>`${PREPARED}
    select environment_id as "environmentId", webhook_id as "webhookId" from lanes
     where environment_id = ${environmentId} and webhook_id between ${firstWebhookId} and ${lastWebhookId}
       and ${hasWork(nowMs, probeWaitMsMax)}`.execute(database);
  return rows;
}

type ClaimedRow = LaneRow & LaneTarget & LaneKey & Pick<ClaimedLane, 'accountId' | 'readFromDay'>;

/** A condition on a lane: it has something to send now, and no holder. */
const isDue = (nowMs: number, probeWaitMsMax: number): RawBuilder<boolean> => sql`
  (${hasWork(nowMs, probeWaitMsMax)} and ${mayStart(nowMs)})`;

/** A condition on a lane: it has something to send now or once its rate allows it, and no holder. */
const hasWork = (nowMs: number, probeWaitMsMax: number): RawBuilder<boolean> => sql`
  (not is_paused and last_sequence > cursor_sequence
   and (lease_until is null or lease_until <= clock_timestamp())
   and (next_probe_at is null or next_probe_at <= ${new Date(nowMs)}
        or next_probe_at > ${unbelievedProbeAt(nowMs, probeWaitMsMax)}))`;

/** A condition on a lane: it does not wait for its rate. */
const mayStart = (nowMs: number): RawBuilder<boolean> => sql`
  (next_start_at is null or next_start_at <= ${new Date(nowMs)}
   or next_start_at > ${new Date(nowMs + NEXT_START_AHEAD_MS_MAX)})`;

/** The end of a statement with the part `free`: locks its lanes, and takes their leases. */
const lockedAndClaimed = (nowMs: number): RawBuilder<unknown> => sql`
       order by environment_id, webhook_id
         for no key update of lanes
    )
    update lanes
       set fencing = fencing + 1, lease_until = clock_timestamp() + free.lease_ms * interval '1 millisecond',
           holder_process_id = free.holder_process_id,
           next_probe_at = case when next_probe_at > ${new Date(nowMs)} then ${new Date(nowMs)} else next_probe_at end
      from free join webhooks using (environment_id, webhook_id) join environments using (environment_id)
      join accounts using (account_id)
     where lanes.environment_id = free.environment_id and lanes.webhook_id = free.webhook_id and ${IS_OPEN}
       and ${IS_WEBHOOK_CURRENT}
    returning lanes.environment_id as "environmentId", lanes.webhook_id as "webhookId",
              environments.account_id::float8 as "accountId",
              lanes.read_from_day::text as "readFromDay", ${SNAPSHOT}, ${TARGET}`;

function claimedOf(row: ClaimedRow): ClaimedLane {
  const { accountId, readFromDay } = row;
  return { ...snapshotOf(row), ...targetOf(row), accountId, readFromDay };
}

/** `claimLanes` of one, under the widest settings. */
export async function claimLane(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  leaseMs: number,
  nowMs: number,
): Promise<ClaimedLane | undefined> {
  const [claimed] = await claimLanes(database, [{ lane, leaseMs }], nowMs, PROBE_WAIT_MS_MAX);
  return claimed;
}

export interface LaneReport extends LaneSnapshot {
  readonly lastSequence: number;
  readonly nextStartAtMs: number | null;
  readonly isPaused: boolean;
  readonly isHeld: boolean;
  /** Its workspace is deleted, or the account of that is closed. */
  readonly isOver: boolean;
}

/** Lanes as they stand, for reads without a claim; undefined in the place of a lane that does not exist. */
export async function findLanes(
  database: DatabaseOrTransaction,
  lanes: readonly LaneKey[],
): Promise<(LaneReport | undefined)[]> {
  const { rows } = await sql<
    LaneRow & { place: number; isPaused: boolean; isHeld: boolean; isOver: boolean }
  >`${PREPARED}
    select asked.place::int, ${SNAPSHOT}, is_paused as "isPaused",
           coalesce(lease_until > clock_timestamp(), false) as "isHeld", not ${IS_OPEN} as "isOver"
      from unnest(
        ${integerColumn(lanes, ({ environmentId }) => environmentId)}::int[],
        ${integerColumn(lanes, ({ webhookId }) => webhookId)}::int[]
      ) with ordinality as asked (environment_id, webhook_id, place)
      join lanes using (environment_id, webhook_id)
      join environments using (environment_id) join accounts using (account_id)`.execute(database);
  const reports = new Map(
    rows.map((row) => [
      row.place,
      { ...snapshotOf(row), isPaused: row.isPaused, isHeld: row.isHeld, isOver: row.isOver },
    ]),
  );
  return lanes.map((_, index) => reports.get(index + 1));
}

/** `findLanes` of one. */
export async function findLane(
  database: DatabaseOrTransaction,
  lane: LaneKey,
): Promise<LaneReport | undefined> {
  const [report] = await findLanes(database, [lane]);
  return report;
}

/** A lane without a holder that has something to do. */
export interface UnclaimedLane extends LaneKey {
  /** Of its last claim; unchanged later if it was not claimed since. */
  readonly fencing: number;
}

/**
 * Lanes that should be running and may have missed their wake-up: work without a lease, a lease that has run out, a
 * retry probe that is due, or one so far away that the clock that put it off was wrong. A lane that waits for its rate
 * is left out. Longest due first, at most `limit` of each.
 */
export async function listLanesToWake(
  database: DatabaseOrTransaction,
  nowMs: number,
  limit: number,
  probeWaitMsMax: number,
): Promise<UnclaimedLane[]> {
  const columns = sql`environment_id as "environmentId", webhook_id as "webhookId", fencing::float8 as fencing`;
  const { rows } = await sql<UnclaimedLane>`${PREPARED}
    (select ${columns} from lanes
      where wake_at <= ${new Date(nowMs)} and ${mayStart(nowMs)}
      order by wake_at limit ${limit})
    union all
    (select ${columns} from lanes
      where wake_at > ${unbelievedProbeAt(nowMs, probeWaitMsMax)}
        and (lease_until is null or lease_until <= clock_timestamp())
      order by wake_at limit ${limit})`.execute(database);
  return rows;
}

export const nameOf = (lane: LaneKey): string => `${lane.environmentId}/${lane.webhookId}`;
