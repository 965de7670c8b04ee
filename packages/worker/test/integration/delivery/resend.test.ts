/** One delivery sent once more, at the end of its webhook's log. */
import type { Database } from '@sluice/database/connection/connection';
import { listDeliveries } from '@sluice/database/delivery/delivery-reads';
import { appendResend, appendTest, probeNow } from '@sluice/database/replays/lane-actions';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { beforeAll, expect, test } from 'vitest';
import {
  createFailingLane,
  createLaneWorld,
  eventIds,
  OK,
  skip,
  statesOf,
  status,
  until,
} from '../support/lane-world.ts';

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

test('a resend sends the same bytes once more, and an abandoned one that succeeds stays abandoned itself', async () => {
  const world = await createFailingLane(database);
  await skip(world);
  await world.deliverAll();
  const bodies: string[] = [];
  world.behave = ({ body }) => {
    bodies.push(body);
    return OK;
  };
  expect(await appendResend(database, world.key, 2, BY_TEST, world.nowMs)).toMatchObject({
    outcome: 'logged',
    sequence: 6,
  });
  await world.deliverAll();
  expect(bodies).toHaveLength(1);
  expect(JSON.parse(bodies[0]!)).toMatchObject({ event_id: 'e2' });
  const [resent] = await listDeliveries(database, world.key, 1);
  expect(resent).toMatchObject({ origin: 'resend', resendOf: 2, state: 'delivered' });
  // A resend of it is one of the first.
  await appendResend(database, world.key, 6, BY_TEST, world.nowMs);
  expect(await listDeliveries(database, world.key, 1)).toMatchObject([{ resendOf: 2 }]);
});

test('a resend that is refused again does not block other deliveries', async () => {
  const world = await createFailingLane(database);
  await skip(world);
  await world.deliverAll();
  await appendResend(database, world.key, 2, BY_TEST, world.nowMs);
  await world.log(3);
  world.sent.length = 0;
  world.behave = (_, eventId) => (eventId === 'e2' ? status(500) : OK);
  expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
  expect(world.sent).toEqual(['e2', ...eventIds(6, 8)]);
  expect((await statesOf(world)).slice(5)).toEqual([
    'e2 resend abandoned 1',
    'e6 event delivered 1',
    'e7 event delivered 1',
    'e8 event delivered 1',
  ]);
  expect(await world.lane()).toMatchObject({ state: 'healthy', cursor: 9 });
});

test('a resend to a failing webhook comes after the blocked deliveries', async () => {
  const world = await createFailingLane(database);
  expect(await appendResend(database, world.key, 1, BY_TEST, world.nowMs)).toMatchObject({
    sequence: 6,
  });
  expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
  await probeNow(database, world.key, BY_TEST, world.nowMs);
  await world.deliverAll();
  expect(world.sent).toEqual([...eventIds(2, 5), 'e1']);
});

test('a resend of an unfinished or unknown delivery, or to a disabled webhook, is refused', async () => {
  const world = await createFailingLane(database);
  expect(await appendResend(database, world.key, 2, BY_TEST, world.nowMs)).toEqual({
    outcome: 'not_finished',
  });
  expect(await appendResend(database, world.key, 4, BY_TEST, world.nowMs)).toEqual({
    outcome: 'not_finished',
  });
  expect(await appendResend(database, world.key, 99, BY_TEST, world.nowMs)).toEqual({
    outcome: 'not_found',
  });
  await world.change({ disabled: true });
  expect(await appendResend(database, world.key, 1, BY_TEST, world.nowMs)).toEqual({
    outcome: 'disabled',
  });
  expect(await world.lane()).toMatchObject({ lastSequence: 5 });
});

test('a resend while events are logged and a worker sends leaves no gap in the log and sends each once', async () => {
  const world = await createLaneWorld(database);
  await world.log(1);
  await world.deliverAll();
  await Promise.all([
    ...Array.from({ length: 10 }, () => world.log(3)),
    ...Array.from({ length: 10 }, () => appendResend(database, world.key, 1, BY_TEST, world.nowMs)),
    ...Array.from({ length: 10 }, (_, index) =>
      appendTest(
        database,
        world.key,
        {
          eventId: `t${index}`,
          eventType: 'email_sent',
          occurredAtMs: world.nowMs,
          body: `{"event_id":"t${index}"}`,
        },
        BY_TEST,
        world.nowMs,
      ),
    ),
    world.deliver(),
  ]);
  await until(async () => (await world.deliver()).outcome === 'idle');
  expect(await world.lane()).toMatchObject({ lastSequence: 51, cursor: 51 });
  expect(world.sent).toHaveLength(51);
  expect(world.sent.filter((eventId) => eventId === 'e1')).toHaveLength(11);
  expect(world.sent.filter((eventId) => eventId.startsWith('t'))).toHaveLength(10);
});
