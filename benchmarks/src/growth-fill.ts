/**
 * A database that has been in use: so many people, as many events over the last ten months, and a tenth
 * as many deliveries that one webhook blocks. Filled set-based into the real tables and partitions.
 */
import type { Database } from '@sluice/database/connection/connection';
import { makeEventPartitions } from '@sluice/database/events/events';
import type { LaneKey } from '@sluice/database/delivery/lanes';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { makeFailingLane } from './failing-lane.ts';

/** Raise it when the filling changes: databases of another version are filled again. */
const VERSION = 1;
const INSERT_SIZE = 500_000;
const DAYS = 300;

export const personIdOf = (number: number): string => `user-${number}`;
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

  await sql`truncate bench_filled, people, person_identifiers, events, event_ids, envelopes`.execute(
    database,
  );
  // Those of the months before the installation, which no installation has, then those to come.
  await sql`select make_event_partitions((now() - ${DAYS}::int * interval '1 day')::date, 12)`.execute(
    database,
  );
  await makeEventPartitions(database, 2);
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
