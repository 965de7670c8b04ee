/**
 * Reads a worker's next deliveries: parts of the logs, with their earlier attempts.
 *
 * A part of a log is read from a day on, so that earlier partitions are not read. If a clock was days behind, this may
 * leave deliveries out, so a page with a gap is read again without that bound.
 *
 * Walk: `deliveries.ts` writes the log before (step 10), and `worker/src/delivery/deliver-webhook.ts` sends it after
 * (step 11).
 */
import type { FailureClass } from '@sluice/domain/delivery/delivery-failure';
import {
  addFailure,
  NEVER_ATTEMPTED,
  type RetryState,
} from '@sluice/domain/delivery/delivery-schedule';
import type { LaneDelivery } from '@sluice/domain/delivery/lane';
import { personInBody } from '@sluice/domain/delivery/webhook';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import { bigintColumn, integerColumn, textColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { listLaneMerges } from './lane-merges.ts';
import type { AttemptRecord } from './lane-progress.ts';

/** A delivery to be sent. */
export interface LoggedDelivery extends LaneDelivery {
  readonly eventId: string;
  readonly eventType: string;
  readonly body: string;
  /** No later delivery of the lane is from a day before this one, `2026-11-20`. */
  readonly readFromDay: string;
  retry: RetryState;
  isFinished: boolean;
  personId: number | null;
  merges?: ReadonlyMap<number, number>;
}

/** The next part of a lane's log. */
export interface LogRequest {
  readonly lane: LaneKey;
  readonly after: number;
  /** Deliveries up to here may have attempts; later ones have no attempts. */
  readonly attemptedThrough: number;
  readonly limit: number;
  /** From `readFromDay` of a delivery up to `after`: partitions before it are not looked at. Null: all are. */
  readonly readFromDay: string | null;
}

/** Of a row of the log, as bits. */
const TRIED_ONCE = 1;
const HAS_MERGES = 2;

/**
 * For each request the deliveries after `after`, in order, at most `limit`, with the results of earlier attempts. One
 * statement for all requests, a second one if there may be attempts, and one if people of the lane were merged. By the
 * primary keys of log, attempts and merges, in the partitions from `readFromDay` on.
 */
export async function listDeliveriesAfter(
  database: DatabaseOrTransaction,
  requests: readonly LogRequest[],
): Promise<LoggedDelivery[][]> {
  const firstDay = firstDayOf(requests);
  const { rows } = await sql<{
    place: number;
    sequence: string;
    eventId: string;
    readFromDay: string;
    eventType: string;
    body: string;
    marks: number;
    personId: string | null;
  }>`${PREPARED}
    select asked.place::int, log.sequence, log.event_id as "eventId", (log.day - 1)::text as "readFromDay", log.event_type as "eventType", log.body,
           log.person_id as "personId",
           -- In one column: each is written and read for each delivery.
           case when log.origin = 'event' then 0 else ${TRIED_ONCE}::int end
             -- Once a page. With an offset Postgres looks into the index, and never reads all of the table.
             + case when log.sequence = asked.after + 1 and exists (
               select from lane_merges m
                where m.environment_id = asked.environment_id and m.webhook_id = asked.webhook_id offset 0)
               then ${HAS_MERGES}::int else 0 end as marks
      from unnest(
        ${integerColumn(requests, ({ lane }) => lane.environmentId)}::int[],
        ${integerColumn(requests, ({ lane }) => lane.webhookId)}::int[],
        ${bigintColumn(requests, ({ after }) => after)}::bigint[],
        ${integerColumn(requests, ({ limit }) => limit)}::int[],
        ${textColumn(requests, ({ readFromDay }) => readFromDay)}::text[]
      ) with ordinality as asked (environment_id, webhook_id, after, most, first_day, place)
     cross join lateral (
        select sequence, day, event_id, event_type, body, origin, person_id from delivery_log
         where environment_id = asked.environment_id and webhook_id = asked.webhook_id and sequence > asked.after
           and day >= ${firstDay}::date and day >= coalesce(asked.first_day::date, '-infinity')
         order by sequence limit asked.most) log
     order by asked.place, log.sequence`.execute(database);
  const pages = requests.map((): LoggedDelivery[] => []);
  const merged: number[] = [];
  // Field by field: an object that is spread costs 0.2 µs more a delivery, of some 30.
  for (const row of rows) {
    const { place, sequence, eventId, readFromDay, eventType, body, personId } = row;
    const isTriedOnce = (row.marks & TRIED_ONCE) !== 0;
    if ((row.marks & HAS_MERGES) !== 0) merged.push(place - 1);
    pages[place - 1]?.push({
      sequence: Number(sequence),
      eventId,
      readFromDay,
      eventType,
      body,
      isTriedOnce,
      // Older versions have logged no person. Deliveries that an operator asked for are outside the order.
      personId: isTriedOnce ? null : personOf(personId, body),
      retry: NEVER_ATTEMPTED,
      isFinished: false,
    });
  }
  await addAttempts(database, requests, pages);
  if (merged.length > 0) await addMerges(database, requests, pages, merged);
  // With their attempts, so it comes after.
  await readAgainWithoutBound(database, requests, pages);
  return pages;
}

const personOf = (personId: string | null, body: string): number | null =>
  personId === null ? personInBody(body) : Number(personId);

/** Deliveries about people who were merged since are about whom they are part of now. */
async function addMerges(
  database: DatabaseOrTransaction,
  requests: readonly LogRequest[],
  pages: readonly LoggedDelivery[][],
  places: readonly number[],
): Promise<void> {
  const asked = places.map((place) => {
    const page = pages[place] ?? [];
    const personIds = new Set(page.flatMap(({ personId }) => personId ?? []));
    return { lane: (requests[place] as LogRequest).lane, personIds: [...personIds], page };
  });
  const merges = await listLaneMerges(database, asked);
  for (const [index, { page }] of asked.entries()) {
    const ofPage = merges[index] as Map<number, number>;
    const [first] = page;
    if (!first || ofPage.size === 0) continue;
    first.merges = ofPage;
    for (const delivery of page)
      if (delivery.personId !== null)
        delivery.personId = ofPage.get(delivery.personId) ?? delivery.personId;
  }
}

/** Reads incomplete pages once more, from the first day that there is. */
async function readAgainWithoutBound(
  database: DatabaseOrTransaction,
  requests: readonly LogRequest[],
  pages: LoggedDelivery[][],
): Promise<void> {
  const places = [...pages.keys()].filter(
    (place) =>
      requests[place]?.readFromDay !== null &&
      isIncomplete(requests[place] as LogRequest, pages[place] ?? []),
  );
  if (places.length === 0) return;
  const unbound = places.map((place) => ({
    ...(requests[place] as LogRequest),
    readFromDay: null,
  }));
  const found = await listDeliveriesAfter(database, unbound);
  for (const [index, place] of places.entries()) pages[place] = found[index] ?? [];
}

/**
 * True if a database whose clock was days behind may have logged, or kept attempts, before the supposed first day: the
 * page is empty or has a gap, or a delivery that may have attempts has no attempt. Otherwise hardly ever: only
 * deliveries in progress when their worker died have no attempt before `attemptedThrough`.
 */
const isIncomplete = (
  { after, attemptedThrough }: LogRequest,
  page: readonly LoggedDelivery[],
): boolean =>
  page.length === 0 ||
  page.some(
    ({ sequence, retry, isFinished }, index) =>
      sequence !== after + 1 + index ||
      (sequence <= attemptedThrough && retry.attempts === 0 && !isFinished),
  );

/** A value of its own in the statement, so that Postgres leaves earlier partitions out when it plans. */
function firstDayOf(requests: readonly Pick<LogRequest, 'readFromDay'>[]): string {
  const days = requests.map(({ readFromDay }) => readFromDay ?? '-infinity');
  // Text of one form sorts as the days do.
  return days.includes('-infinity') ? '-infinity' : (days.toSorted()[0] ?? '-infinity');
}

async function addAttempts(
  database: DatabaseOrTransaction,
  requests: readonly LogRequest[],
  pages: readonly LoggedDelivery[][],
): Promise<void> {
  const ranges = requests.flatMap(({ lane, attemptedThrough }, place) => {
    const page = pages[place] ?? [];
    const from = page[0]?.sequence ?? Infinity;
    if (from > attemptedThrough) return [];
    return [{ lane, page, from, through: Math.min(attemptedThrough, page.at(-1)?.sequence ?? 0) }];
  });
  if (ranges.length === 0) return;
  const { rows } = await sql<{
    place: number;
    sequence: string;
    startedAt: Date;
    status: number | null;
    outcome: AttemptRecord['outcome'];
    failure: FailureClass | null;
  }>`${PREPARED}
    select asked.place::int, a.sequence, a.started_at as "startedAt", a.status, a.outcome, a.failure
      from unnest(
        ${integerColumn(ranges, ({ lane }) => lane.environmentId)}::int[],
        ${integerColumn(ranges, ({ lane }) => lane.webhookId)}::int[],
        ${bigintColumn(ranges, ({ from }) => from)}::bigint[],
        ${bigintColumn(ranges, ({ through }) => through)}::bigint[]
      ) with ordinality as asked (environment_id, webhook_id, first, last, place)
      join delivery_attempts a
        on a.environment_id = asked.environment_id and a.webhook_id = asked.webhook_id
       and a.sequence between asked.first and asked.last and a.day >= ${firstDayOf(requests)}::date
     order by asked.place, a.sequence, a.attempt`.execute(database);
  for (const { place, sequence, startedAt, status, outcome, failure } of rows) {
    const range = ranges[place - 1];
    const delivery = range?.page[Number(sequence) - range.from];
    if (!delivery) continue;
    delivery.isFinished = outcome !== 'retrying';
    if (failure === null) continue;
    delivery.retry = addFailure(delivery.retry, {
      startedAtMs: startedAt.getTime(),
      status,
      failure,
    });
  }
}
