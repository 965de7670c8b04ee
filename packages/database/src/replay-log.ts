/**
 * Which rows of a webhook's log a replay wants: counting them, and reading on from a place.
 *
 * A replay is asked for with whatever somebody can say of what went wrong, so there is no index for
 * it: the log is read in the order of its primary key, at most so many rows a statement, and where a
 * time is given it is first searched for, because along a lane's sequence times all but never
 * decrease (a delivery is logged under the lock of its lane, at the time its transaction began).
 */
import type { FailureClass } from '@sluice/domain/delivery-failure';
import { addFailure, NEVER_ATTEMPTED } from '@sluice/domain/delivery-schedule';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from './connection.ts';
import type { LoggedDelivery } from './deliveries.ts';
import type { AttemptRecord, LaneKey } from './lanes.ts';

/** What is to be sent again; all that is given must hold. Only what happened: no resends and no tests. */
export interface ReplayCriteria {
  /** Logged at this time or later, before that one. Unix seconds. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  readonly eventTypes?: readonly string[] | undefined;
  readonly states?: readonly ('delivered' | 'abandoned')[] | undefined;
  /** Whom the event is about, by the identifiers in its body. */
  readonly person?: { readonly kind: 'id' | 'email' | 'svc_id'; readonly value: string } | undefined;
}

/** No transaction that logs deliveries takes so long. */
const OUT_OF_ORDER_SECONDS = 600;

/** The sequence before the first one that can have been logged at `since`; about 40 reads by the primary key. */
export async function findSequenceBefore(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  since: number | undefined,
  throughSequence: number,
): Promise<number> {
  if (since === undefined) return 0;
  const wanted = (since - OUT_OF_ORDER_SECONDS) * 1000;
  let low = 1;
  let high = throughSequence + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const { rows } = await sql<{ sequence: string; appendedAt: Date }>`
      select sequence, appended_at as "appendedAt" from delivery_log
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and sequence >= ${middle}
       order by sequence limit 1`.execute(database);
    const [row] = rows;
    if (!row || row.appendedAt.getTime() >= wanted) high = middle;
    else low = Number(row.sequence) + 1;
  }
  return low - 1;
}

export interface LogRange {
  readonly afterSequence: number;
  readonly throughSequence: number;
}

/** How many match, of the first `scanLimit` rows; `isComplete` where that was all. */
export async function countMatching(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  criteria: ReplayCriteria,
  range: LogRange,
  scanLimit: number,
): Promise<{ readonly count: number; readonly isComplete: boolean }> {
  const { rows } = await sql<{ count: string; examined: string }>`
    with examined as (${examinedRows(lane, range, scanLimit)})
    select count(*) filter (where ${matching(lane, criteria)}) as count, count(*) as examined from examined`.execute(
    database,
  );
  const [row] = rows;
  return { count: Number(row?.count), isComplete: Number(row?.examined) < scanLimit };
}

/** Deliveries that match, with their place in the log. */
export interface ReplayedDelivery extends Omit<LoggedDelivery, 'sequence'> {
  readonly logSequence: number;
}

export interface ReplayPage {
  readonly deliveries: readonly ReplayedDelivery[];
  /** Everything up to here was looked at. */
  readonly scannedThrough: number;
}

/** The next that match, with what attempts of this replay came to; at most `limit` of `scanLimit` rows. */
export async function listReplayed(
  database: DatabaseOrTransaction,
  lane: LaneKey & { readonly replayId: number },
  criteria: ReplayCriteria,
  range: LogRange,
  limit: number,
  scanLimit: number,
): Promise<ReplayPage> {
  const { rows } = await sql<{
    sequence: string;
    eventId: string;
    body: string;
    examinedThrough: string | null;
  }>`
    with examined as materialized (${examinedRows(lane, range, scanLimit)}
    ), through as (
      select max(sequence) as sequence, count(*) as count from examined
    )
    select sequence, event_id as "eventId", body,
           (select case when count = ${scanLimit} then sequence end from through) as "examinedThrough"
      from examined where ${matching(lane, criteria)}
     order by sequence limit ${limit}`.execute(database);
  const last = rows.at(-1);
  const scannedThrough =
    last && rows.length === limit
      ? Number(last.sequence)
      : await scannedTo(database, lane, range, scanLimit, last?.examinedThrough);
  const attempts = await listReplayAttempts(
    database,
    lane,
    rows.map((row) => Number(row.sequence)),
  );
  const attemptsBySequence = Map.groupBy(attempts, (attempt) => attempt.sequence);
  return {
    scannedThrough,
    deliveries: rows.map((row) => {
      const sequence = Number(row.sequence);
      const earlier = attemptsBySequence.get(sequence) ?? [];
      return {
        logSequence: sequence,
        eventId: row.eventId,
        body: row.body,
        isTriedOnce: false,
        isFinished: earlier.some(({ outcome }) => outcome !== 'retrying'),
        retry: earlier.reduce(
          (retry, { startedAtMs, status, failure }) =>
            failure === null ? retry : addFailure(retry, { startedAtMs, status, failure }),
          NEVER_ATTEMPTED,
        ),
      };
    }),
  };
}
