/** Deliveries about people who are merged keep their order: those logged about each of them before, and those after. */
import type { Database } from '@sluice/database/connection/connection';
import { deleteEndedLaneMerges } from '@sluice/database/delivery/lane-merges';
import { NumberStock } from '@sluice/database/people/numbers';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, merge } from '@sluice/domain/testing/sample-operations';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { sql } from 'kysely';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { LanesInProgress } from '../../../src/delivery/lanes-in-progress.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';
import {
  createGate,
  createLaneWorld,
  OK,
  POLICY,
  status,
  until,
  type LaneWorld,
} from '../support/lane-world.ts';

let database: Database;
let world: LaneWorld;
let deps: Parameters<typeof processCommitBatch>[0];

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});
beforeEach(async () => {
  world = await createLaneWorld(database, {
    events: ['customer_subscribed', 'customer_unsubscribed'],
  });
  deps = {
    database,
    numbers: new NumberStock(),
    takenIds: new TakenIdWatch(),
    newId: createIdGenerator(Date.now),
    now: () => world.nowMs,
  };
  isSubscribed.clear();
});

const WIDE = { policy: { ...POLICY, windowMax: 64 } };

const isSubscribed = new Map<string, boolean>();
/** Reports one delivery. */
function change(who: string): Operation {
  const unsubscribed = isSubscribed.get(who) ?? true;
  isSubscribed.set(who, !unsubscribed);
  return identify(`id:${who}`, { unsubscribed });
}
/** Makes no report. The primary is as it was. */
const join = (primary: string, secondary: string) => merge(`id:${primary}`, `id:${secondary}`);

const apply = (...operations: Operation[]) =>
  processCommitBatch(deps, {
    id: deps.newId(),
    operations: operations.map((each) => ({ ...each, environmentId: world.environmentId })),
  });

/** Event ids of the log, by sequence from 1. */
async function readLog(): Promise<string[]> {
  const { rows } = await sql<{ eventId: string }>`
    select event_id as "eventId" from delivery_log where environment_id = ${world.environmentId}
     order by sequence`.execute(database);
  return rows.map(({ eventId }) => eventId);
}

async function countMerges(): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from lane_merges where environment_id = ${world.environmentId}`.execute(
    database,
  );
  return rows[0]?.count ?? 0;
}

/** These people are known, and the lane has grown to eight requests at a time. */
async function know(...names: string[]): Promise<void> {
  await apply(...names.map((name) => change(name)));
  await world.deliverAll(WIDE);
  await sql`update lanes set send_window = 8 where environment_id = ${world.environmentId}`.execute(
    database,
  );
  world.sent.length = 0;
}

test('a delivery about the merged person that hangs and fails is not overtaken by a later one about the other', async () => {
  await know('primary', 'secondary', 'bystander');
  await apply(change('secondary'));
  const [hanging] = (await readLog()).slice(-1);
  const gate = createGate();
  const received: string[] = [];
  let isFailing = true;
  world.behave = async (_, eventId) => {
    if (eventId === hanging && isFailing) {
      await gate.opened;
      isFailing = false;
      return status(503);
    }
    received.push(eventId);
    return OK;
  };
  const inProgress = new LanesInProgress();
  const delivering = world.deliver({ ...WIDE, inProgress });
  await until(() => world.sent.length === 1);
  await apply(join('primary', 'secondary'));
  expect(await countMerges()).toBe(1);
  await apply(change('primary'), change('bystander'));
  const [ofPrimary, ofBystander] = (await readLog()).slice(-2);
  expect(inProgress.tell({ ...world.key, lastSequence: 6 })).toBe(true);
  await until(() => received.includes(ofBystander!));
  gate.open();
  const waiting = await delivering;
  expect(received).toEqual([ofBystander]);
  if (waiting.outcome !== 'waiting') throw new Error(waiting.outcome);
  world.nowMs = waiting.untilMs;
  expect(await world.deliverAll(WIDE)).toEqual({ outcome: 'idle' });
  expect(received).toEqual([ofBystander, hanging, ofPrimary]);
});

test('deliveries about people who were merged one after another arrive in the order of the log', async () => {
  await know('one', 'two', 'three');
  for (let time = 0; time < 5; time++) await apply(change('one'), change('two'), change('three'));
  await apply(join('two', 'one'));
  await apply(change('two'));
  await apply(join('three', 'two'));
  for (let time = 0; time < 5; time++) await apply(change('three'));
  expect(await countMerges()).toBe(2);
  let inFlight = 0;
  let most = 0;
  world.behave = async () => {
    most = Math.max(most, ++inFlight);
    for (let turns = world.sent.length % 5; turns >= 0; turns--)
      await new Promise((resolve) => setImmediate(resolve));
    inFlight--;
    return OK;
  };
  expect(await world.deliverAll(WIDE)).toEqual({ outcome: 'idle' });
  expect(most).toBe(1);
  expect(world.sent).toEqual((await readLog()).slice(3));
});

test('a merge beside changes of both in one batch keeps their order', async () => {
  await know('primary', 'secondary');
  await apply(
    change('secondary'),
    change('primary'),
    change('new'),
    join('primary', 'secondary'),
    join('primary', 'new'),
    change('primary'),
  );
  const { rows } = await sql<{ personId: string }>`
    select distinct person_id as "personId" from delivery_log
     where environment_id = ${world.environmentId} and sequence > 2`.execute(database);
  expect(rows).toHaveLength(1);
});

test('a merge is kept only while deliveries wait that were logged before it', async () => {
  await know('primary', 'secondary', 'third');
  await apply(join('primary', 'secondary'));
  expect(await countMerges()).toBe(0);
  await apply(change('third'));
  await apply(join('primary', 'third'));
  await deleteEndedLaneMerges(database);
  expect(await countMerges()).toBe(1);
  await world.deliverAll(WIDE);
  await deleteEndedLaneMerges(database);
  expect(await countMerges()).toBe(0);
});
