/** Deliveries of a real log that a replay takes: the counted ones are the sent ones. */
import type { Database } from '@sluice/database/connection/connection';
import { skipHead } from '@sluice/database/replays/lane-actions';
import type { ReplayCriteria } from '@sluice/database/replays/replay-log';
import { planReplay } from '@sluice/database/replays/replay-start';
import { listAttemptsOfReplay } from '@sluice/database/replays/replays';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { createLaneWorld, HOUR_MS, OK, status, type LaneWorld } from '../support/lane-world.ts';
import { ALL, createDelivered, replayAll, start } from '../support/replay-world.ts';

let database: Database;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
});

describe('matches', () => {
  /** Three types, two people, two times; the third delivery was abandoned. */
  async function createMixed(): Promise<LaneWorld> {
    const world = await createLaneWorld(database);
    await world.log(2);
    await world.deliverAll();
    await world.log(1);
    world.behave = () => status(500);
    await world.deliverAll();
    await skipHead(database, world.key, { sequence: 3, note: 'by a test' }, BY_TEST, world.nowMs);
    world.behave = () => OK;
    await world.log(3);
    await world.deliverAll();
    // Blocked, so that it is sent anyway.
    world.behave = () => status(500);
    await world.log(1);
    await world.deliverAll();
    world.behave = () => OK;
    const who = (id: string) =>
      JSON.stringify({ data: { identifiers: { id, email: `${id}@Example.com` }, note: 'ada' } });
    await sql`
      update delivery_log set appended_at = to_timestamp(1000 + sequence * 3600),
             event_type = case when sequence % 2 = 0 then 'email_sent' else event_type end,
             body = case when sequence in (2, 5) then ${who('ada')} else ${who('"bob"')} end
       where webhook_id = ${world.webhookId}`.execute(database);
    world.sent.length = 0;
    return world;
  }

  test.each<[string, ReplayCriteria, number[]]>([
    ['everything that has ended', ALL, [1, 2, 3, 4, 5, 6]],
    ['what was abandoned', { states: ['abandoned'] }, [3]],
    ['what was delivered', { states: ['delivered'] }, [1, 2, 4, 5, 6]],
    ['since a time, that included', { since: 1000 + 3 * 3600 }, [3, 4, 5, 6]],
    ['until a time, that excluded', { until: 1000 + 3 * 3600 }, [1, 2]],
    ['event types', { eventTypes: ['email_sent'] }, [2, 4, 6]],
    ['a person by id', { person: { kind: 'id', value: 'ada' } }, [2, 5]],
    ['an id with quotes', { person: { kind: 'id', value: '"bob"' } }, [1, 3, 4, 6]],
    [
      'an email, whatever its letter case',
      { person: { kind: 'email', value: 'ADA@example.COM' } },
      [2, 5],
    ],
    ['an id only as it is written', { person: { kind: 'id', value: 'Ada' } }, []],
    [
      'all that is given together',
      {
        since: 1000,
        until: 20_000,
        eventTypes: ['email_sent'],
        person: { kind: 'id', value: 'ada' },
      },
      [2],
    ],
    ['nothing', { since: 2_000_000_000 }, []],
  ])('%s, counted and sent alike', async (_, criteria, sequences) => {
    const world = await createMixed();
    const plan = { outcome: 'counted', count: sequences.length, isComplete: true };
    expect(await planReplay(database, world.key, criteria)).toMatchObject(plan);
    const { key, find } = await start(world, criteria);
    const sent: string[] = [];
    while ((await find()).state === 'running') {
      await world.replay({
        post: async (request) => {
          sent.push(request.body);
          return OK;
        },
      });
      world.nowMs += 100;
    }
    const attempts = await listAttemptsOfReplay(database, key, { sequence: 0, attempt: 0 }, 100);
    expect(attempts.map((attempt) => attempt.sequence)).toEqual(sequences);
    expect(sent).toHaveLength(sequences.length);
  });

  test('no tests and no resends', async () => {
    const world = await createDelivered(database, 3);
    await sql`
      update delivery_log set origin = 'test' where webhook_id = ${world.webhookId} and sequence = 2`.execute(
      database,
    );
    expect(await planReplay(database, world.key, ALL)).toMatchObject({ count: 2 });
  });
});

test('deliveries that ended beside a blocking head are taken, and waiting ones are left to the lane', async () => {
  const world = await createLaneWorld(database);
  await world.log(6);
  world.behave = (_, eventId) => (eventId === 'e3' ? status(500) : OK);
  await world.deliverAll();
  const ended = world.sent.filter((eventId) => eventId !== 'e3');
  expect(ended).toContain('e4');
  expect(await planReplay(database, world.key, ALL)).toMatchObject({ count: ended.length });

  const { find } = await start(world);
  world.behave = () => OK;
  world.nowMs += HOUR_MS;
  await world.deliverAll();
  world.sent.length = 0;
  await replayAll(world, find);
  expect(world.sent).toEqual(ended);
  expect(await find()).toMatchObject({ total: ended.length, delivered: ended.length });
});

test('rows that do not match are passed by, page after page, until the end', async () => {
  const world = await createLaneWorld(database);
  await sql`
    insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, appended_at, body)
    select ${world.environmentId}, ${world.webhookId}, n, 'x' || n, case when n % 10000 = 7 then 'email_sent' else 'email_opened' end,
           now(), to_timestamp(n), '{"event_id": "x' || n || '"}' from generate_series(1, 35000) n`.execute(
    database,
  );
  await sql`
    update lanes set last_sequence = 35000, cursor_sequence = 35000, attempted_sequence = 35000
     where webhook_id = ${world.webhookId}`.execute(database);
  const criteria = { since: 5_000, eventTypes: ['email_sent'] };
  expect(await planReplay(database, world.key, criteria)).toMatchObject({
    count: 3,
    afterSequence: 5_000 - 601,
  });
  const { find } = await start(world, criteria);
  await replayAll(world, find);
  expect(world.sent).toEqual(['x10007', 'x20007', 'x30007']);
  expect(await find()).toMatchObject({ state: 'done', total: 3, delivered: 3 });
});
