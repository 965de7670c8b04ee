/** One of the databases that stand side by side in `growth.ts`: filled, and open on one connection that is measured. */
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { NumberStock } from '@sluice/database/people/numbers';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { TakenIdWatch } from '@sluice/worker/events/taken-id-watch';
import { sql } from 'kysely';
import { openBackendMeter, type BackendCost, type BackendMeter } from './backend-cost.ts';
import { fillGrown, insertVisitors } from './growth-fill.ts';
import type { World } from './world.ts';

export interface Grown {
  readonly size: number;
  readonly database: Database;
  readonly lane: LaneKey;
  /** Of the one connection. */
  readonly backend: BackendMeter;
  readonly numbers: NumberStock;
  readonly takenIds: TakenIdWatch;
  /** Of each work, a round each. */
  readonly costs: Map<string, BackendCost[]>;
  turn: number;
}

/** @param isWarm - reads the data that is needed at random places in before. */
export async function openGrown(world: World, size: number, isWarm: boolean): Promise<Grown> {
  const startedAtMs = performance.now();
  const filled = await world.addDatabase(`growth_${size}`);
  const lane = await fillGrown(filled.database, size);
  if (isWarm) await warmUp(filled.database);
  console.log(
    `${size.toLocaleString('en')} people, visitors and events: ready in ${((performance.now() - startedAtMs) / 1_000).toFixed(0)} s`,
  );
  const pool = createDatabase({
    url: filled.databaseUrl,
    poolMax: 1,
    applicationName: 'bench growth',
    onError: () => undefined,
  });
  world.onClose(() => pool.destroy());
  // Held from now on: a pool closes one that is idle, and another backend would begin cold.
  const database = await new Promise<Database>((resolve, reject) => {
    pool
      .connection()
      .execute(async (connection) => {
        resolve(connection);
        await new Promise<void>((release) => world.onClose(release));
      })
      .catch(reject);
  });
  return {
    size,
    database,
    lane,
    backend: await openBackendMeter(database, filled.database),
    numbers: new NumberStock(),
    takenIds: new TakenIdWatch(),
    costs: new Map(),
    turn: 0,
  };
}

/**
 * Reads the data that is needed at random places into the shared buffers, as on a server that has been up for days:
 * identifiers, people, visitors, the ids of events, this and last month's events by person.
 */
async function warmUp(database: Database): Promise<void> {
  await sql`create extension if not exists pg_prewarm`.execute(database);
  await sql`
    select sum(pg_prewarm(oid::regclass)) from pg_class
     where relkind in ('r', 'i')
       and (relname ~ '^(people|person_identifiers|event_ids)(_pkey|_by_person)?$' or relname ~ '^visitors_'
            or relname ~ ('^events_(' || to_char(now(), 'YYYY_MM') || '|'
                          || to_char(now() - interval '1 month', 'YYYY_MM') || ')'))`.execute(
    database,
  );
}

/** Deletes the rows of the rounds, so that the next run begins with the same amount. */
export async function restore({ database, size }: Grown): Promise<void> {
  await sql`delete from events where name is distinct from 'Filled'`.execute(database);
  await sql`
    update person_identifiers set person_id = null where kind = 'anonymous_id' and person_id is not null`.execute(
    database,
  );
  await sql`
    update people set attributes = attributes || '{"plan":"pro"}', attribute_places = null
     where attribute_places is not null`.execute(database);
  await sql`truncate devices`.execute(database);
  await insertVisitors(database, 1, size);
  await sql`delete from event_ids where envelope_number is not null`.execute(database);
  await sql`truncate envelopes`.execute(database);
  await sql`vacuum analyze events, event_ids, people, person_identifiers, visitors`.execute(
    database,
  );
}
