/**
 * Cost of the same work as the database fills up. The databases have 10⁴ and 10⁶ people, visitors and events
 * (`--sizes 10000,1000000,10000000` for more). They stand in one Postgres and take turns:
 *
 * - `process`: a commit batch of 1,000 events of 250 people, anywhere among all of them.
 * - `visitors`: a trait of a visitor, and the identification of another one, 100 in a commit batch.
 * - `floor`: 100 people found by their key and updated by one statement.
 * - Each statement of a lane that blocks a tenth as many deliveries.
 * - Reads of the account and the app API, such as a page of a person's history.
 *
 * It counts the CPU of the one backend that does the work, from `/proc`, because disks and other programs
 * change the clock time. `--keep FOLDER` keeps the databases for the next run, `--warm` reads the hot set in
 * before, `--postgres NAME=VALUE` tries a setting.
 */
import { parseArgs } from 'node:util';
import { findAccount } from '@sluice/database/accounts/accounts';
import { listActivities } from '@sluice/database/people/activity-reads';
import { PREPARED, type Database } from '@sluice/database/connection/connection';
import { findPersonProfile } from '@sluice/database/people/customer-reads';
import { findEventArrival, findEventAt } from '@sluice/database/events/event-traces';
import { countProfiles } from '@sluice/database/credits/meter-reads';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type {
  IdentifyPerson,
  Operation,
  PersonIdentifier,
} from '@sluice/domain/operations/operation';
import type { JsonObject } from '@sluice/domain/values/json';
import { processCommitBatch } from '@sluice/worker/events/process-commit-batch';
import { sql } from 'kysely';
import { COST_KINDS, type BackendCost, type CostKind } from './backend-cost.ts';
import { exerciseLane, type Meter } from './failing-lane.ts';
import { openGrown, restore, type Grown } from './grown-database.ts';
import { anonymousIdOf, eventIdOf, personIdOf } from './growth-fill.ts';
import { newId, trackEvent } from './queued-events.ts';
import { median, type Report } from './report.ts';
import { withWorld } from './world.ts';

const OPERATIONS = 1_000;
const PEOPLE_A_COMMIT_BATCH = 250;
/** A small number: twenty rounds identify a fifth of 10⁴ visitors. */
const VISITORS_A_COMMIT_BATCH = 100;
/** Small reads are made so many times for one reading. */
const READS = 20;
/** As the app API asks for it. */
const SHOWN_FOR_MS = 30 * 86_400_000;
const GROUPS = ['process', 'visitors', 'floor', 'lane', 'reads'] as const;
type Group = (typeof GROUPS)[number];

export async function benchGrowth(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      sizes: { type: 'string', default: '10000,1000000' },
      rounds: { type: 'string', default: '20' },
      keep: { type: 'string' },
      postgres: { type: 'string', multiple: true, default: [] },
      warm: { type: 'boolean', default: false },
    },
  });
  const sizes = values.sizes.split(',').map(Number);
  const rounds = Number(values.rounds);
  return withWorld(
    'full',
    async (world) => {
      const all: Grown[] = [];
      for (const size of sizes) all.push(await openGrown(world, size, values.warm));
      // The first is the warm-up.
      for (let round = 0; round <= rounds; round++) {
        for (const grown of all) await runRound(grown);
        if (round === 0) all.forEach(({ costs }) => costs.clear());
      }
      const groups = new Map<string, Group>();
      for (const name of all[0]?.costs.keys() ?? []) groups.set(name, name.split(': ')[0] as Group);
      const costOf = (grown: Grown, name: string, kind: CostKind = 'cpuUs') =>
        median((grown.costs.get(name) ?? []).map((cost) => cost[kind]));
      const curveOf = (kind: CostKind) =>
        Object.fromEntries(
          [...groups.keys()].map((name) => [
            name,
            Object.fromEntries(
              all.map((grown) => [grown.size, Number(costOf(grown, name, kind).toPrecision(4))]),
            ),
          ]),
        );
      const curves = Object.fromEntries(COST_KINDS.map((kind) => [kind, curveOf(kind)]));
      printCurves(curves);
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
        details: {
          sizes,
          rounds,
          ...(await describePostgres(world.database, values.warm)),
          ...curves,
        },
        versions: world.versions,
      };
    },
    {
      postgresSettings: Object.fromEntries(values.postgres.map(readSetting)),
      ...(values.keep === undefined ? {} : { keptDirectory: values.keep }),
    },
  );
}

type Curve = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** A table a kind of cost: of each work, one figure a size. */
function printCurves(curves: Readonly<Record<string, Curve>>): void {
  for (const [kind, curve] of Object.entries(curves)) {
    console.log(kind);
    for (const [name, costs] of Object.entries(curve))
      console.log(
        `  ${name.padEnd(30)} ${Object.entries(costs)
          .map(([size, cost]) => `${size}: ${cost}`)
          .join('  ')}`,
      );
  }
}

function readSetting(text: string): [string, string] {
  const [name = '', value] = text.split('=');
  if (value === undefined) throw new Error(`--postgres wants NAME=VALUE, not ${text}`);
  return [name, value];
}

async function runRound(grown: Grown): Promise<void> {
  const { database, size, lane } = grown;
  const meterOf =
    (group: Group, times = 1): Meter =>
    async (name, run) => {
      const { result, cost } = await grown.backend.measure(run);
      const each = Object.fromEntries(COST_KINDS.map((kind) => [kind, cost[kind] / times]));
      const full = `${group}: ${name}`;
      grown.costs.set(full, [...(grown.costs.get(full) ?? []), each as BackendCost]);
      return result;
    };
  /** A place among all that are there, never two near each other in turn. */
  const next = () => 1 + Math.floor(((++grown.turn * 0.618_033_988_75) % 1) * size);

  const people = Array.from({ length: PEOPLE_A_COMMIT_BATCH }, () => personIdOf(next()));
  const process = async (operations: readonly Operation[], eventsMin: number): Promise<void> => {
    const processed = await processCommitBatch(
      { database, numbers: grown.numbers, takenIds: grown.takenIds, newId, now: Date.now },
      { id: newId(), operations },
    );
    if (processed.outcome !== 'applied' || processed.counts.events < eventsMin)
      throw new Error(`a commit batch was ${JSON.stringify(processed)}`);
  };
  const events = Array.from({ length: OPERATIONS }, (_, n) =>
    trackEvent(people[n % people.length] as string),
  );
  await meterOf('process', OPERATIONS)('an event', () => process(events, OPERATIONS));
  const visits = Array.from({ length: VISITORS_A_COMMIT_BATCH }, () =>
    identify({ kind: 'anonymous_id', value: anonymousIdOf(next()) }, { plan: newId() }),
  );
  await meterOf('visitors', visits.length)('a trait', () => process(visits, 0));
  const logins = Array.from({ length: VISITORS_A_COMMIT_BATCH }, () => ({
    ...identify({ kind: 'id', value: personIdOf(next()) }, {}),
    anonymousId: anonymousIdOf(next()),
  }));
  await meterOf('visitors', logins.length)('an identification', () => process(logins, 1));
  const rows = Array.from({ length: VISITORS_A_COMMIT_BATCH }, next);
  await meterOf('floor', rows.length)('a row', () => updateRows(database, rows));
  await exerciseLane(database, lane, newId(), meterOf('lane'));

  const read = async <Row>(name: string, one: (place: number) => Promise<Row>): Promise<void> => {
    await meterOf('reads', READS)(name, async () => {
      for (let time = 0; time < READS; time++)
        if ((await one(next())) === undefined) throw new Error(`${name}: the read found no row`);
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
      notBeforeMs: Date.now() - SHOWN_FOR_MS,
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

/** Another value in place of one of the same length, as a trait does. */
async function updateRows(database: Database, rows: readonly number[]): Promise<void> {
  await sql`${PREPARED}
    update people p set attributes = p.attributes || '{"plan":"max"}'
      from unnest(${rows}::bigint[]) as k (person_id)
     where p.environment_id = ${DEMO.environmentId}::int and p.person_id = k.person_id`.execute(
    database,
  );
}

const identify = (person: PersonIdentifier, attributes: JsonObject): IdentifyPerson => ({
  type: 'person.identify',
  environmentId: DEMO.environmentId,
  receivedAtMs: Date.now(),
  person,
  attributes,
  mayCreate: true,
});

async function describePostgres(database: Database, isWarm: boolean) {
  const { rows } = await sql<{ name: string; value: string }>`
    select name, current_setting(name) as value from pg_settings
     where name in ('shared_buffers', 'huge_pages_status', 'wal_compression', 'full_page_writes', 'max_wal_size')`.execute(
    database,
  );
  return {
    postgres: Object.fromEntries(rows.map(({ name, value }) => [name, value])),
    hot_set_read_in_before: isWarm,
  };
}
