/** Deliveries about one person are never reordered; those about others do not wait for them. */
import type { Database } from '@sluice/database/connection/connection';
import { findLaneState } from '@sluice/database/delivery/lane-states';
import { NumberStock } from '@sluice/database/people/numbers';
import { appendResend } from '@sluice/database/replays/lane-actions';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify } from '@sluice/domain/testing/sample-operations';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { svcId } from '@sluice/domain/values/svc-id';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';
import {
  createGate,
  createLaneWorld,
  eventIds,
  OK,
  POLICY,
  skip,
  status,
  statesOf,
  storeOf,
  until,
  type LaneWorld,
} from '../support/lane-world.ts';

let database: Database;

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

const WIDE = { policy: { ...POLICY, windowMax: 64 } };

/** As if it had been growing for a while. */
const allowEight = ({ environmentId }: LaneWorld) =>
  sql`update lanes set send_window = 8 where environment_id = ${environmentId}`.execute(database);

/** Answers late and in any order, so that only events that wait for each other arrive in order. */
function answerInAnyOrder(world: LaneWorld, received: string[], failing = (_: number) => false) {
  const random = seededRandom(7);
  let count = 0;
  world.behave = async (_, eventId) => {
    const isFailing = failing(++count);
    for (let turns = Math.floor(random() * 20); turns >= 0; turns--)
      await new Promise((resolve) => setImmediate(resolve));
    if (!isFailing) received.push(eventId);
    return isFailing ? status(503) : OK;
  };
}

describe('a lane with room for many requests', () => {
  test('sends a hundred changes of one person one after another, and waits behind a failed one', async () => {
    const world = await createLaneWorld(database);
    await world.logAbout(Array.from({ length: 100 }, () => 7));
    const received: string[] = [];
    answerInAnyOrder(world, received, (request) => request === 20);
    const waiting = await world.deliverAll(WIDE);
    expect(received).toEqual(eventIds(1, 19));
    if (waiting.outcome !== 'waiting') throw new Error(waiting.outcome);
    world.nowMs = waiting.untilMs;
    expect(await world.deliverAll(WIDE)).toEqual({ outcome: 'idle' });
    expect(received).toEqual(eventIds(1, 100));
  });

  test('keeps the order of each of ten people, and has requests of several in flight', async () => {
    const world = await createLaneWorld(database);
    const random = seededRandom(3);
    const people = Array.from({ length: 600 }, () => Math.floor(random() * 10));
    await world.logAbout(people);
    const received: string[] = [];
    answerInAnyOrder(world, received, (request) => request % 97 === 0);
    let outcome = await world.deliverAll(WIDE);
    while (outcome.outcome === 'waiting') {
      world.nowMs = outcome.untilMs;
      outcome = await world.deliverAll(WIDE);
    }
    const place = new Map(received.map((eventId, index) => [eventId, index]));
    expect(place.size).toBe(600);
    for (let person = 0; person < 10; person++) {
      const places = people.flatMap((about, index) =>
        about === person ? [place.get(`e${index + 1}`) as number] : [],
      );
      expect(places).toEqual(places.toSorted((one, other) => one - other));
    }
    // Somebody passed somebody else, or it would not be worth the lines.
    expect(received).not.toEqual(eventIds(1, 600));
  });

  test('lets others pass a person whose endpoint is slow, and resumes the line afterwards', async () => {
    const world = await createLaneWorld(database);
    await allowEight(world);
    await world.logAbout([1, 1, 1, ...Array.from({ length: 40 }, (_, index) => 2 + index)]);
    const gate = createGate();
    world.behave = async (_, eventId) => {
      if (eventId === 'e1') await gate.opened;
      return OK;
    };
    const delivering = world.deliver();
    await until(() => world.sent.length === 41);
    expect(world.sent).not.toContain('e2');
    gate.open();
    expect(await delivering).toEqual({ outcome: 'idle' });
    expect(world.sent.slice(-2)).toEqual(['e2', 'e3']);
    expect(await world.lane()).toMatchObject({ cursor: 43, attemptedThrough: 43 });
  });

  test('holds little of a long backlog about one person in memory', async () => {
    const world = await createLaneWorld(database);
    await allowEight(world);
    await world.logAbout(Array.from({ length: 1_000 }, () => 7));
    const gate = createGate();
    let loaded = 0;
    const store = storeOf(world);
    world.behave = async () => {
      await gate.opened;
      return OK;
    };
    const delivering = world.deliver({
      store: {
        ...store,
        async load(request) {
          const page = await store.load(request);
          loaded += page.length;
          return page;
        },
      },
    });
    await until(() => world.sent.length === 1 && loaded >= 64);
    await new Promise((resolve) => setImmediate(resolve));
    expect(loaded).toBeLessThanOrEqual(128);
    gate.open();
    await delivering;
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(1, 1_000));
  });
});

test('deliveries that an older version logged are kept in order too, by the person in their bodies', async () => {
  const world = await createLaneWorld(database);
  await world.log(30);
  await sql`
    update delivery_log
       set body = jsonb_set(body::jsonb, '{data,identifiers}', ${JSON.stringify({ svc_id: svcId(5) })}::text::jsonb)::text
     where environment_id = ${world.environmentId}`.execute(database);
  await sql`
    update delivery_log set body = replace(body, '"svc_id": ', '"svc_id":')
     where environment_id = ${world.environmentId}`.execute(database);
  const received: string[] = [];
  answerInAnyOrder(world, received);
  await world.deliverAll(WIDE);
  expect(received).toEqual(eventIds(1, 30));
});

test('deliveries about one person stay in order, with any identifier in the call and the event', async () => {
  const world = await createLaneWorld(database, {
    events: ['customer_subscribed', 'customer_unsubscribed'],
  });
  const { environmentId } = world;
  const deps = {
    database,
    numbers: new NumberStock(),
    takenIds: new TakenIdWatch(),
    newId: createIdGenerator(Date.now),
    now: () => world.nowMs,
  };
  const change = (who: string, unsubscribed: boolean): Operation => ({
    ...identify(who, { unsubscribed, email: 'one@example.com' }),
    environmentId,
  });
  await processCommitBatch(deps, { id: deps.newId(), operations: [change('id:one', false)] });
  const names = ['id:one', 'email:one@example.com'];
  const operations = Array.from({ length: 40 }, (_, index) =>
    change(names[index % 2] as string, index % 2 === 0),
  );
  await processCommitBatch(deps, { id: deps.newId(), operations });
  const { rows } = await sql<{ eventId: string; personId: string | null }>`
    select event_id as "eventId", person_id as "personId" from delivery_log
     where environment_id = ${environmentId} order by sequence`.execute(database);
  expect(rows).toHaveLength(41);
  expect(new Set(rows.map(({ personId }) => personId)).size).toBe(1);
  expect(rows[0]?.personId).not.toBeNull();
  const received: string[] = [];
  answerInAnyOrder(world, received);
  await world.deliverAll(WIDE);
  expect(received).toEqual(rows.map(({ eventId }) => eventId));
});

test('a webhook with strict order has one request in flight, with any concurrency', async () => {
  const world = await createLaneWorld(database, { ordering: 'strict', windowMax: 50 });
  await world.logAbout(Array.from({ length: 60 }, (_, index) => index));
  let inFlight = 0;
  let most = 0;
  world.behave = async () => {
    most = Math.max(most, ++inFlight);
    await new Promise((resolve) => setImmediate(resolve));
    inFlight--;
    return OK;
  };
  expect(await world.deliverAll(WIDE)).toEqual({ outcome: 'idle' });
  expect(most).toBe(1);
  expect(world.sent).toEqual(eventIds(1, 60));
});

test('a resend is outside the order: it passes the deliveries for which its person waits', async () => {
  const world = await createLaneWorld(database);
  await world.logAbout([7]);
  await world.deliverAll();
  await world.logAbout([7, 7]);
  await appendResend(database, world.key, 1, BY_TEST, world.nowMs);
  world.sent.length = 0;
  const gate = createGate();
  world.behave = async (_, eventId) => {
    if (eventId === 'e2') await gate.opened;
    return OK;
  };
  const delivering = world.deliver(WIDE);
  await until(() => world.sent.length === 2);
  expect(world.sent).toEqual(['e2', 'e1']);
  gate.open();
  await delivering;
});

describe('a failing lane with deliveries before its head that were never tried', () => {
  /** e1 and e2 are about one person; e1 was slow, e2 waited for it, e3 failed meanwhile. */
  async function createPassedLane(): Promise<LaneWorld> {
    const world = await createLaneWorld(database);
    await allowEight(world);
    await world.logAbout([1, 1, 2, 3]);
    const gate = createGate();
    world.behave = async (_, eventId) => {
      if (eventId === 'e1') await gate.opened;
      return eventId === 'e3' ? status(503) : OK;
    };
    const delivering = world.deliver(WIDE);
    await until(() => world.sent.includes('e4'));
    await until(async () => (await world.lane())?.state === 'failing');
    gate.open();
    expect(await delivering).toMatchObject({ outcome: 'waiting' });
    expect(world.sent).toEqual(['e1', 'e3', 'e4']);
    expect(await world.lane()).toMatchObject({ cursor: 1, attemptedThrough: 4, state: 'failing' });
    world.sent.length = 0;
    world.behave = () => OK;
    return world;
  }

  test('shows the one that failed as its head', async () => {
    const world = await createPassedLane();
    expect(await findLaneState(database, world.key)).toMatchObject({
      state: 'failing',
      unfinishedCount: 2,
      head: { sequence: 3, attempts: 1, status: 503 },
    });
  });

  test('is probed with the one that failed, and the others follow', async () => {
    const world = await createPassedLane();
    world.nowMs += 10_000;
    expect(await world.deliverAll(WIDE)).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(['e3', 'e2']);
  });

  test('gives up the one that failed when its owner skips it, and no other', async () => {
    const world = await createPassedLane();
    expect(await skip(world, 2)).toBe('not_head');
    expect(await skip(world, 3)).toBe('skipped');
    expect(await world.deliverAll(WIDE)).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(['e2']);
    expect(await statesOf(world)).toEqual([
      'e1 event delivered 1',
      'e2 event delivered 1',
      'e3 event abandoned 2',
      'e4 event delivered 1',
    ]);
  });
});
