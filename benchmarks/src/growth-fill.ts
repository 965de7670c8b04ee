/**
 * A database that has been in use: so many people, as many events over the last ten months, as many visitors of the
 * last four weeks, and a tenth as many deliveries that one webhook blocks. Filled set-based into the real tables and partitions.
 */
import type { Database } from '@sluice/database/connection/connection';
import { makeEventPartitions } from '@sluice/database/events/events';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import { makeVisitorPartitions } from '@sluice/database/people/visitors';
import { makeFailingLane } from './failing-lane.ts';

/** Raise it when the filling changes: databases of another version are filled again. */
const VERSION = 2;
const INSERT_SIZE = 500_000;
const DAYS = 300;
const VISITOR_WEEKS = 4;

export const personIdOf = (number: number): string => `user-${number}`;
export const anonymousIdOf = (number: number): string => `visitor-${number}`;
/** Sorts before every id that is made now, and is as long. */
export const eventIdOf = (number: number): string => `00${String(number).padStart(24, '0')}`;

/** Fills the database, unless it was. @returns the lane that blocks. */
export async function fillGrown(database: Database, size: number): Promise<LaneKey> {
  await sql`create table if not exists bench_filled (version int, webhook_id int)`.execute(
    database,
  );
  const { rows } = await sql<{ webhookId: number }>`
    select webhook_id as "webhookId" from bench_filled where version = ${VERSION}`.execute(
    database,
  );
  if (rows[0]) return { environmentId: DEMO.environmentId, webhookId: rows[0].webhookId };

  await sql`truncate bench_filled, people, person_identifiers, visitors, events, event_ids, envelopes`.execute(
    database,
  );
  // Partitions of the months before the installation, which no installation has, then the later ones.
  await sql`select make_event_partitions((now() - ${DAYS}::int * interval '1 day')::date, 12)`.execute(
    database,
  );
  await makeEventPartitions(database, 2);
  const firstWeek = new Date(Date.now() - (VISITOR_WEEKS - 1) * 7 * 86_400_000);
  await makeVisitorPartitions(database, firstWeek, VISITOR_WEEKS + 1);
  const now = new Date();
  for (let from = 1; from <= size; from += INSERT_SIZE)
    await insertPart(database, size, from, Math.min(size, from + INSERT_SIZE - 1), now);
  // Numbers are taken in blocks of 1,000; these are taken.
  await sql`select setval('number_blocks', ${Math.ceil(size / 1_000) + 1}::bigint)`.execute(
    database,
  );
  const lane = await makeFailingLane(database, Math.ceil(size / 10));
  await sql`vacuum analyze`.execute(database);
  await sql`insert into bench_filled values (${VERSION}, ${lane.webhookId})`.execute(database);
  await sql`checkpoint`.execute(database);
  return lane;
}

async function insertPart(
  database: Database,
  size: number,
  from: number,
  to: number,
  now: Date,
): Promise<void> {
  const numbers = sql`generate_series(${from}::int, ${to}::int) n`;
  const environmentId = sql`${DEMO.environmentId}::int`;
  // Of an event and of its id the same.
  const cameAt = sql`
    ${now}::timestamptz - ${DAYS}::int * interval '1 day' * (1 - n::float8 / ${size}::int)`;
  await sql`
    insert into people (environment_id, person_id, id, attributes, created_at, updated_at)
    select ${environmentId}, n, 'user-' || n,
           jsonb_build_object('plan', 'pro', 'city', 'Town ' || n % 1000, 'logins', n % 100), now(), now()
      from ${numbers}`.execute(database);
  await sql`
    insert into person_identifiers (environment_id, person_id, kind, value)
    select ${environmentId}, n, 'id', 'user-' || n from ${numbers} order by ('user-' || n) collate "C"`.execute(
    database,
  );
  await insertVisitors(database, from, to);
  // In the order in which they came; whose they are is mixed.
  await sql`
    insert into events (environment_id, person_id, event_id, kind, name, data, occurred_at, received_at, processed_at)
    select ${environmentId}, 1 + n * 7919::bigint % ${size}::int, '00' || lpad(n::text, 24, '0'), 'event', 'Filled',
           '{"plan":"pro","amount":42.5,"currency":"EUR","items":["sku-1","sku-2"]}', at, at, at
      from ${numbers}
     cross join lateral (select ${cameAt} as at) as came`.execute(database);
  await sql`
    insert into event_ids (environment_id, event_id, received_at, source)
    select ${environmentId}, '00' || lpad(n::text, 24, '0'),
           ${cameAt}, 'pipelines.track'
      from ${numbers}`.execute(database);
}

/** Visitors of these numbers who are not there, each with two traits and a device. */
export async function insertVisitors(database: Database, from: number, to: number): Promise<void> {
  const environmentId = sql`${DEMO.environmentId}::int`;
  const numbers = sql`generate_series(${from}::int, ${to}::int) n`;
  await sql`
    insert into person_identifiers (environment_id, person_id, kind, value)
    select ${environmentId}, null, 'anonymous_id', 'visitor-' || n from ${numbers} order by ('visitor-' || n) collate "C"
    on conflict do nothing`.execute(database);
  // The form of places without a kept log: the number of a batch, in 11 digits between eight and four.
  await sql`
    insert into visitors (environment_id, week, anonymous_id, newest_place, profile)
    select ${environmentId},
           date '1970-01-01' + 7 * ((now()::date - date '1970-01-01') / 7 - n % ${VISITOR_WEEKS}::int),
           'visitor-' || n, place,
           jsonb_build_object(
             'attributes', jsonb_build_object('plan', jsonb_build_object('value', 'free', 'place', place, 'atMs', at),
                                              'city', jsonb_build_object('value', 'Town ' || n % 1000, 'place', place, 'atMs', at)),
             'relationships', '{}'::jsonb,
             'devices', jsonb_build_object('token-' || n, jsonb_build_object('platform', 'ios', 'lastUsedAtMs', null,
                                              'attributes', '{}'::jsonb, 'createdAtMs', at, 'atMs', at)))
      from ${numbers}
     cross join lateral (
       select '00000000' || lpad(n::text, 11, '0') || '0000' as place,
              (extract(epoch from now()) * 1000)::bigint as at) as written
     order by ('visitor-' || n) collate "C"
    on conflict do nothing`.execute(database);
}
