/**
 * Rows of a webhook's log for a replay: counting them, and reading on from a place.
 *
 * A replay may be asked for by many criteria, so no index fits it: the log is read in the order of its primary key, a
 * bounded number of rows a statement. If a time is given it is first searched for, because along a lane's sequence
 * times hardly ever decrease (a delivery is logged under the lock of its lane, at the time its transaction began).
 */
import type { FailureClass } from '@sluice/domain/delivery/delivery-failure';
import { foldEmail } from '@sluice/domain/value-rules/identifier-rule';
import { addFailure, NEVER_ATTEMPTED } from '@sluice/domain/delivery/delivery-schedule';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import type { LoggedDelivery } from '../delivery/logged-deliveries.ts';
import type { AttemptRecord } from '../delivery/lane-progress.ts';

/** The deliveries to send again; every given criterion must hold. Resends and tests are left out. */
export interface ReplayCriteria {
  /** Logged at this time or later, before that one. Unix seconds. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  readonly eventTypes?: readonly string[] | undefined;
  readonly states?: readonly ('delivered' | 'abandoned')[] | undefined;
  /** Whom the event is about, by the identifiers in its body. */
  readonly person?:
    | { readonly kind: 'id' | 'email' | 'svc_id'; readonly value: string }
    | undefined;
}

/** The criteria of a replay, and the deliveries that its lane has still to send anyway. */
export interface ReplaySearch extends ReplayCriteria {
  /** Sequences that were neither delivered nor abandoned when it was asked for. */
  readonly heldBack?: readonly number[];
}

/** No transaction that logs deliveries takes so long. */
const OUT_OF_ORDER_SECONDS = 600;

/**
 * The sequence before the first one that can have been logged at `since`. Halves the remaining part of the log until
 * one place is left, in one statement: about 40 looks by the primary key.
 */
export async function findSequenceBefore(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  since: number | undefined,
  throughSequence: number,
): Promise<number> {
  if (since === undefined) return 0;
  const wanted = new Date((since - OUT_OF_ORDER_SECONDS) * 1000);
  const { rows } = await sql<{ before: string }>`
    with recursive search (low, high) as (
      select 1::bigint, ${throughSequence}::bigint + 1
      union all
      select case when found.appended_at < ${wanted} then found.sequence + 1 else low end,
             case when found.appended_at < ${wanted} then high else middle end
        from search
       cross join lateral (select (low + high) / 2 as middle) half
        left join lateral (
          select sequence, appended_at from delivery_log
           where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId} and sequence >= middle
           order by sequence limit 1) found on true
       where low < high
    )
    select max(low) - 1 as before from search`.execute(database);
  return Number(rows[0]?.before);
}

export interface LogRange {
  readonly afterSequence: number;
  readonly throughSequence: number;
}

export interface MatchCount {
  readonly count: number;
  /** False if the scan ended before the range did. */
  readonly isComplete: boolean;
  /** Times at which the first and the last one were logged; null without a match. */
  readonly firstAt: Date | null;
  readonly lastAt: Date | null;
  readonly countsByType: Readonly<Record<string, number>>;
}

/** The matches among the first `scanLimit` rows of the range, in one statement by the primary key. */
export async function countMatching(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  criteria: ReplaySearch,
  range: LogRange,
  scanLimit: number,
): Promise<MatchCount> {
  const { rows } = await sql<{
    eventType: string;
    count: string;
    examined: string;
    firstAt: Date | null;
    lastAt: Date | null;
  }>`
    select event_type as "eventType", count(*) filter (where is_match) as count, count(*) as examined,
           min(appended_at) filter (where is_match) as "firstAt", max(appended_at) filter (where is_match) as "lastAt"
      from (
        select event_type, appended_at, ${matching(lane, criteria)} as is_match
          from (${examinedRows(lane, range, scanLimit)}) log
      ) judged
     group by event_type order by event_type`.execute(database);
  const sum = (counts: readonly string[]) =>
    counts.reduce((total, each) => total + Number(each), 0);
  const matched = rows.filter(({ count }) => count !== '0');
  const atMs = matched.flatMap(({ firstAt, lastAt }) => [Number(firstAt), Number(lastAt)]);
  return {
    count: sum(rows.map(({ count }) => count)),
    isComplete: sum(rows.map(({ examined }) => examined)) < scanLimit,
    firstAt: atMs.length === 0 ? null : new Date(Math.min(...atMs)),
    lastAt: atMs.length === 0 ? null : new Date(Math.max(...atMs)),
    countsByType: Object.fromEntries(
      matched.map(({ eventType, count }) => [eventType, Number(count)]),
    ),
  };
}

export interface ReplayKey extends LaneKey {
  readonly replayId: number;
}

/** A delivery that matches, with its place in the log. */
export interface ReplayedDelivery extends Omit<LoggedDelivery, 'sequence'> {
  readonly logSequence: number;
}

export interface ReplayPage {
  readonly deliveries: readonly ReplayedDelivery[];
  /** Everything up to here was looked at. */
  readonly scannedThrough: number;
}

/** The next matches, with the results of this replay's earlier attempts; at most `limit`, of `scanLimit` rows. */
export async function listReplayed(
  database: DatabaseOrTransaction,
  replay: ReplayKey,
  criteria: ReplaySearch,
  range: LogRange,
  limit: number,
  scanLimit: number,
): Promise<ReplayPage> {
  const { rows } = await sql<{
    sequence: string;
    eventId: string;
    readFromDay: string;
    eventType: string;
    body: string;
  }>`
    select sequence, (day - 1)::text as "readFromDay", event_id as "eventId", event_type as "eventType", body
      from (${examinedRows(replay, range, scanLimit)}) log
     where ${matching(replay, criteria)}
     order by sequence limit ${limit}`.execute(database);
  const found = rows.map((row) => ({ ...row, sequence: Number(row.sequence) }));
  const last = found.at(-1);
  const scannedThrough =
    last && found.length === limit
      ? last.sequence
      : await findScannedThrough(database, replay, range, scanLimit);
  const attempts = await listReplayAttempts(
    database,
    replay,
    found.map((row) => row.sequence),
  );
  const attemptsBySequence = Map.groupBy(attempts, (attempt) => attempt.sequence);
  return {
    scannedThrough,
    deliveries: found.map(({ sequence, ...row }) => {
      const earlier = attemptsBySequence.get(sequence) ?? [];
      return {
        logSequence: sequence,
        ...row,
        isTriedOnce: false,
        // A replay repeats deliveries that were once in order; its order is free.
        personId: null,
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

type ReplayAttempt = Pick<
  AttemptRecord,
  'sequence' | 'startedAtMs' | 'status' | 'outcome' | 'failure'
>;

/** By the primary key. */
async function listReplayAttempts(
  database: DatabaseOrTransaction,
  { environmentId, webhookId, replayId }: ReplayKey,
  sequences: readonly number[],
): Promise<ReplayAttempt[]> {
  if (sequences.length === 0) return [];
  const { rows } = await sql<{
    sequence: string;
    startedAt: Date;
    status: number | null;
    outcome: AttemptRecord['outcome'];
    failure: FailureClass | null;
  }>`
    select sequence, started_at as "startedAt", status, outcome, failure from replay_attempts
     where environment_id = ${environmentId} and webhook_id = ${webhookId} and replay_id = ${replayId}
       and sequence = any (${sequences}::bigint[])
     order by sequence, attempt`.execute(database);
  return rows.map(({ startedAt, sequence, ...row }) => ({
    ...row,
    sequence: Number(sequence),
    startedAtMs: startedAt.getTime(),
  }));
}

async function findScannedThrough(
  database: DatabaseOrTransaction,
  lane: LaneKey,
  range: LogRange,
  scanLimit: number,
): Promise<number> {
  const { rows } = await sql<{ last: string | null; examined: string }>`
    select max(sequence) as last, count(*) as examined from (
      select sequence from delivery_log
       where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
         and sequence > ${range.afterSequence} and sequence <= ${range.throughSequence}
       order by sequence limit ${scanLimit}) log`.execute(database);
  const [row] = rows;
  return Number(row?.examined) < scanLimit ? range.throughSequence : Number(row?.last);
}

const examinedRows = (lane: LaneKey, range: LogRange, scanLimit: number) => sql`
  select sequence, day, event_id, event_type, appended_at, origin, body from delivery_log
   where environment_id = ${lane.environmentId} and webhook_id = ${lane.webhookId}
     and sequence > ${range.afterSequence} and sequence <= ${range.throughSequence}
   order by sequence limit ${scanLimit}`;

/** Of a row named `log`. */
function matching(lane: LaneKey, criteria: ReplaySearch): RawBuilder<unknown> {
  const { since, until, eventTypes, states, person, heldBack = [] } = criteria;
  const conditions = [sql`log.origin = 'event'`];
  if (heldBack.length > 0) conditions.push(sql`log.sequence <> all (${heldBack}::bigint[])`);
  if (since !== undefined) conditions.push(sql`log.appended_at >= to_timestamp(${since})`);
  if (until !== undefined) conditions.push(sql`log.appended_at < to_timestamp(${until})`);
  if (eventTypes) conditions.push(sql`log.event_type = any (${eventTypes}::text[])`);
  if (person) {
    // The text is looked for first: a body that does not hold it need not be parsed.
    // In the collation C only A to Z have small letters, as in `foldEmail`.
    const folded = foldEmail(person.value);
    const quoted = JSON.stringify(folded);
    conditions.push(sql`
      case when strpos(lower(log.body collate "C"), ${quoted}) > 0
           then lower(log.body::jsonb #>> array['data', 'identifiers', ${person.kind}] collate "C") = ${folded}
                and (${person.kind === 'email'} or log.body::jsonb #>> array['data', 'identifiers', ${person.kind}] = ${person.value})
           else false end`);
  }
  if (states) {
    conditions.push(sql`exists (
      select from delivery_attempts a
       where a.environment_id = ${lane.environmentId} and a.webhook_id = ${lane.webhookId}
         and a.sequence = log.sequence and a.outcome = any (${states}::text[]))`);
  }
  return sql.join(conditions, sql` and `);
}
