/**
 * Does it get slower as it fills up? The same work on databases with 10⁴ and 10⁶ people and events
 * (`--sizes 10000,1000000,10000000` for more), which stand side by side in one Postgres and take turns:
 *
 * - `process`: an envelope of 1,000 events of 250 people, anywhere among all of them
 * - each statement of a lane that holds back a tenth as many deliveries
 * - reads of the account and the app API: an account, a person, a page of a person's history, the trace of
 *   an event, the number of people that the bill goes by
 *
 * Counted is the CPU of the one backend that does it, from `/proc`: what a disk, or whoever else uses
 * the machine, does to the clock is not growth. `--keep FOLDER` keeps the databases for the next run.
 */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { findAccount } from '@sluice/database/accounts';
import { listActivities } from '@sluice/database/activity-reads';
import { createDatabase, type Database } from '@sluice/database/connection';
import { findPersonProfile } from '@sluice/database/customer-reads';
import { findEventArrival, findEventAt } from '@sluice/database/event-traces';
import type { LaneKey } from '@sluice/database/lanes';
import { countProfiles } from '@sluice/database/meter-reads';
import { NumberStock } from '@sluice/database/numbers';
import { DEMO } from '@sluice/database/seed-demo';
import { processEnvelope } from '@sluice/worker/process-envelope';
import { sql } from 'kysely';
import { exerciseLane, type Meter } from './failing-lane.ts';
import { eventIdOf, fillGrown, personIdOf } from './growth-fill.ts';
import { newId, trackEvent } from './queued-events.ts';
import { median, type Report } from './report.ts';
import { withWorld, type World } from './world.ts';

const OPERATIONS = 1_000;
const PEOPLE_AN_ENVELOPE = 250;
/** Small reads are made so many times for one reading. */
const READS = 20;
const GROUPS = ['process', 'lane', 'reads'] as const;
type Group = (typeof GROUPS)[number];

interface Grown {
  readonly size: number;
  readonly database: Database;
  readonly lane: LaneKey;
  /** Of the one connection. */
  readonly pid: number;
  readonly numbers: NumberStock;
  /** Of each work, µs of CPU. */
  readonly costs: Map<string, number[]>;
  turn: number;
}

export async function benchGrowth(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      sizes: { type: 'string', default: '10000,1000000' },
      rounds: { type: 'string', default: '20' },
      keep: { type: 'string' },
    },
  });
  const sizes = values.sizes.split(',').map(Number);
  const rounds = Number(values.rounds);
  return withWorld(
    'full',
    async (world) => {
      const all: Grown[] = [];
      for (const size of sizes) all.push(await openGrown(world, size));
      // The first is the warm-up.
      for (let round = 0; round <= rounds; round++) {
        for (const grown of all) await runRound(grown);
        if (round === 0) all.forEach(({ costs }) => costs.clear());
      }
      const groups = new Map<string, Group>();
      for (const name of all[0]?.costs.keys() ?? []) groups.set(name, name.split(': ')[0] as Group);
      const costOf = (grown: Grown, name: string) => median(grown.costs.get(name) ?? []);
      const curve = Object.fromEntries(
        [...groups.keys()].map((name) => [
          name,
          Object.fromEntries(all.map((grown) => [grown.size, Math.round(costOf(grown, name))])),
        ]),
      );
      for (const [name, costs] of Object.entries(curve))
        console.log(
          `${name.padEnd(30)} µs of CPU ${Object.entries(costs)
            .map(([size, cost]) => `${size}: ${cost}`)
            .join('  ')}`,
        );
      const [least, most] = [all[0] as Grown, all.at(-1) as Grown];
      const ratios = Object.fromEntries(
        [...groups.keys()].map((name) => [
          `${name}, most/least`,
          costOf(most, name) / costOf(least, name),
        ]),
      );
      const worstOf = (group: Group) =>
        Math.max(
          ...[...groups]
            .filter(([, of]) => of === group)
            .map(([name]) => ratios[`${name}, most/least`] ?? NaN),
        );
      if (values.keep !== undefined) for (const grown of all) await restore(grown);
      return {
        bench: 'growth',
        ratios: {
          ...Object.fromEntries(
            GROUPS.map((group) => [`worst of ${group}, most/least`, worstOf(group)]),
          ),
          ...ratios,
        },
        rates: {},
        latencyMs: {},
        details: { sizes, rounds, cpu_us: curve },
        versions: world.versions,
      };
    },
    { ...(values.keep === undefined ? {} : { keptDirectory: values.keep }) },
  );
}

async function openGrown(world: World, size: number): Promise<Grown> {
  const startedAtMs = performance.now();
  const filled = await world.addDatabase(`growth_${size}`);
  const lane = await fillGrown(filled.database, size);
  console.log(
    `${size.toLocaleString('en')} people and events: ready in ${((performance.now() - startedAtMs) / 1_000).toFixed(0)} s`,
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
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(database);
  return {
    size,
    database,
    lane,
    pid: rows[0]?.pid ?? 0,
    numbers: new NumberStock(),
    costs: new Map(),
    turn: 0,
  };
}

async function runRound(grown: Grown): Promise<void> {
  const { database, size, lane } = grown;
  const meterOf =
    (group: Group, times = 1): Meter =>
    async (name, run) => {
      const before = await cpuMicrosecondsOf(grown.pid);
      const result = await run();
      const cost = ((await cpuMicrosecondsOf(grown.pid)) - before) / times;
      const full = `${group}: ${name}`;
      grown.costs.set(full, [...(grown.costs.get(full) ?? []), cost]);
      return result;
    };
  /** A place among all that are there, never two near each other in turn. */
  const next = () => 1 + Math.floor(((++grown.turn * 0.618_033_988_75) % 1) * size);

  const people = Array.from({ length: PEOPLE_AN_ENVELOPE }, () => personIdOf(next()));
  const envelope = {
    id: newId(),
    operations: Array.from({ length: OPERATIONS }, (_, n) =>
      trackEvent(people[n % people.length] as string),
    ),
  };
  await meterOf('process', OPERATIONS)('an event', async () => {
    const processed = await processEnvelope(
      { database, numbers: grown.numbers, newId, now: Date.now },
      envelope,
    );
    if (processed.outcome !== 'applied' || processed.counts.events !== OPERATIONS)
      throw new Error(`an envelope was ${JSON.stringify(processed)}`);
  });
  await exerciseLane(database, lane, newId(), meterOf('lane'));

  const read = async <Row>(name: string, one: (place: number) => Promise<Row>): Promise<void> => {
    await meterOf('reads', READS)(name, async () => {
      for (let time = 0; time < READS; time++)
        if ((await one(next())) === undefined) throw new Error(`${name}: nothing was found`);
    });
  };
  const { environmentId, accountId } = DEMO;
  await read('account', () => findAccount(database, accountId));
  await read('person', (place) =>
    findPersonProfile(database, { environmentId, kind: 'id', value: personIdOf(place) }),
  );
  await read('history of a person', (place) =>
    listActivities(database, {
      environmentId,
      personId: String(place),
      notBeforeMs: 0,
      kind: undefined,
      name: undefined,
      after: undefined,
      limit: 50,
    }),
  );
  await read('trace of an event', async (place) => {
    const arrival = await findEventArrival(database, environmentId, eventIdOf(place));
    return (
      arrival?.receivedAt &&
      findEventAt(database, environmentId, eventIdOf(place), arrival.receivedAt)
    );
  });
  await meterOf('reads')('number of people', async () => {
    if ((await countProfiles(database, accountId)) !== size) throw new Error('people are missing');
  });
}

/** Takes out what the rounds put in, so that the next run begins with as much. */
async function restore({ database }: Grown): Promise<void> {
  await sql`delete from events where name = 'Order Placed'`.execute(database);
  await sql`delete from event_ids where envelope_number is not null`.execute(database);
  await sql`truncate envelopes`.execute(database);
  await sql`vacuum analyze events, event_ids`.execute(database);
}

/** Time on a core, in µs. `/proc/<pid>/stat` counts in hundredths of a second. */
async function cpuMicrosecondsOf(pid: number): Promise<number> {
  return Number((await readFile(`/proc/${pid}/schedstat`, 'utf8')).split(' ')[0]) / 1_000;
}
