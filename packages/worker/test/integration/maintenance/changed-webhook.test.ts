/** Changes of a webhook while its lane is being drained. */
import type { Database } from '@sluice/database/connection/connection';
import { listDeliveries } from '@sluice/database/delivery/delivery-reads';
import { createTestDatabase, untilLockWaiters } from '@sluice/database/testing/testing';
import {
  cancelRotation,
  promoteDueSigningKeys,
  promoteSigningKey,
  startRotation,
} from '@sluice/database/webhooks/signing-keys';
import { deleteWebhook, updateWebhook } from '@sluice/database/webhooks/webhooks';
import { beforeAll, describe, expect, test } from 'vitest';
import { clearDeletedWebhooks } from '../../../src/maintenance/webhook-tasks.ts';
import {
  createGate,
  createHearing,
  createLaneWorld,
  eventIds,
  HOUR_MS,
  OK,
  status,
  storeOf,
  type LaneWorld,
} from '../support/lane-world.ts';

let database: Database;

/** Sends the webhook elsewhere; the change is committed once `commit` is opened. */
function changeEndpoint({ environmentId, webhookId, nowMs }: LaneWorld) {
  const made = createGate();
  const commit = createGate();
  const ended = database.transaction().execute(async (transaction) => {
    const changes = { endpoint: 'http://elsewhere.test/' };
    await updateWebhook(transaction, environmentId, webhookId, changes, nowMs);
    made.open();
    await commit.opened;
  });
  return { made: made.opened, commit: () => commit.open(), ended };
}

/** A hearing, and the store of a drain that reports to it. */
function hearingOf(world: LaneWorld) {
  const store = storeOf(world);
  const hearing = createHearing();
  return { ...hearing, store: { ...store, keep: hearing.watch((report) => store.keep(report)) } };
}

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

describe('a webhook that is changed meanwhile', () => {
  test('disabled: stops, keeps its deliveries, and resumes in order when enabled', async () => {
    const world = await createLaneWorld(database);
    await world.log(300);
    const { made, heard, store } = hearingOf(world);
    world.behave = async (_, eventId) => {
      if (eventId === 'e3') {
        await world.change({ disabled: true });
        made();
      } else if (Number(eventId.slice(1)) > 3) await heard;
      await new Promise((resolve) => setTimeout(resolve, 5));
      return OK;
    };
    expect(await world.deliver({ store })).toEqual({ outcome: 'paused' });
    const sentBefore = world.sent.length;
    expect(sentBefore).toBeLessThan(300);
    expect(await world.deliver()).toEqual({ outcome: 'paused' });
    await world.log(5);
    expect(world.sent.length).toBe(sentBefore);

    world.behave = () => OK;
    expect(await world.change({ disabled: false })).toMatchObject({ mustWake: true });
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(1, 300));
  });

  test('deleted: stops, and its remaining rows are cleared', async () => {
    const world = await createLaneWorld(database);
    await world.log(300);
    const { made, heard, store } = hearingOf(world);
    world.behave = async (_, eventId) => {
      if (eventId === 'e3') {
        await deleteWebhook(database, world.environmentId, world.webhookId);
        made();
      } else if (Number(eventId.slice(1)) > 3) await heard;
      await new Promise((resolve) => setTimeout(resolve, 5));
      return OK;
    };
    expect(await world.deliver({ store })).toEqual({ outcome: 'fenced' });
    expect(world.sent.length).toBeLessThan(300);
    expect(await world.deliver()).toEqual({ outcome: 'gone' });
    expect(await clearDeletedWebhooks(database, 100)).toBe(2);
    expect(await listDeliveries(database, world.key, 100)).toEqual([]);
    expect(await clearDeletedWebhooks(database, 100)).toBe(0);
  });

  test('sent elsewhere: a failing lane probes there at once', async () => {
    const world = await createLaneWorld(database);
    await world.log(2);
    world.behave = ({ endpoint }) => (endpoint.includes('elsewhere') ? OK : status(404));
    expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
    await world.change({ endpoint: 'http://elsewhere.test/' });
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(['e1', 'e1', 'e2']);
  });

  describe('sent otherwise: a failing lane is tried at once with', () => {
    const rotation = (signingKey: string, overlapMs: number) => (world: LaneWorld) =>
      startRotation(
        database,
        world,
        { signingKey, signsFromMs: world.nowMs + overlapMs },
        world.nowMs,
      );
    const RIGHT_HEADERS = '{"authorization":"Bearer right"}';

    test.each<[string, (world: LaneWorld) => Promise<unknown>]>([
      ['other headers', (world) => world.change({ customHeaders: RIGHT_HEADERS })],
      ['the headers of Standard Webhooks', (world) => world.change({ standardWebhooks: true })],
      ['another secret', rotation('another', 0)],
      ['a next secret beside it', rotation('another', HOUR_MS)],
      [
        'a secret that is promoted',
        async (world) => {
          await rotation('another', HOUR_MS)(world);
          await world.deliverAll();
          world.sent.length = 0;
          return promoteSigningKey(database, world, world.nowMs);
        },
      ],
      [
        'the old secret alone, the next one being taken back',
        async (world) => {
          await rotation('another', HOUR_MS)(world);
          await world.deliverAll();
          world.sent.length = 0;
          return cancelRotation(database, world, world.nowMs);
        },
      ],
      [
        'the next secret whose time has come',
        async (world) => {
          await rotation('another', 60_000)(world);
          await world.deliverAll();
          world.sent.length = 0;
          world.nowMs += 60_000;
          await promoteDueSigningKeys(database, world.nowMs);
        },
      ],
    ])('%s', async (_, change) => {
      const world = await createLaneWorld(database);
      await world.log(2);
      world.behave = () => status(401);
      expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
      world.sent.length = 0;
      await change(world);
      world.behave = () => OK;
      expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
      expect(world.sent).toEqual(['e1', 'e2']);
    });

    test('its sending settings only: after any other change the hour stays', async () => {
      const world = await createLaneWorld(database);
      await world.log(2);
      world.behave = () => status(401);
      await world.deliver();
      await world.change({
        name: 'another',
        windowMax: 3,
        withContent: true,
        events: ['customer_subscribed'],
      });
      await world.change({ standardWebhooks: false, endpoint: 'http://receiver.test/hook' });
      expect(await world.deliverAll()).toMatchObject({
        outcome: 'waiting',
        untilMs: world.nowMs + HOUR_MS + 3,
      });
    });

    test('other headers, while an attempt with the old ones was under way', async () => {
      const world = await createLaneWorld(database);
      await world.log(2);
      world.behave = async ({ headers }) => {
        if (headers['authorization'] === 'Bearer right') return OK;
        await world.change({ customHeaders: RIGHT_HEADERS });
        return status(401);
      };
      expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
      expect(world.sent).toEqual(['e1', 'e1', 'e2']);
    });
  });

  test('sent elsewhere while an attempt was under way: its failure costs no wait', async () => {
    const world = await createLaneWorld(database);
    await world.log(2);
    world.behave = async ({ endpoint }) => {
      if (endpoint.includes('elsewhere')) return OK;
      await world.change({ endpoint: 'http://elsewhere.test/' });
      return status(404);
    };
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(['e1', 'e1', 'e2']);
    expect(await world.lane()).toMatchObject({ state: 'healthy', cursor: 2 });
  });

  test('sent elsewhere while others are under way to the old address: their failures cost no wait either', async () => {
    const world = await createLaneWorld(database);
    await world.log(200);
    const gate = createGate();
    const { made, heard, store } = hearingOf(world);
    world.behave = async ({ endpoint }, eventId) => {
      if (endpoint.includes('elsewhere')) {
        gate.open();
        return OK;
      }
      if (eventId === 'e1') {
        const changes = { endpoint: 'http://elsewhere.test/' };
        await world.change(changes);
        made();
      } else if (eventId === 'e2') {
        await gate.opened;
        return status(404);
      } else await heard;
      await new Promise((resolve) => setTimeout(resolve, 5));
      return OK;
    };
    expect(await world.deliverAll({ store })).toEqual({ outcome: 'idle' });
    expect(world.sent.filter((eventId) => eventId === 'e2')).toHaveLength(2);
    expect(new Set(world.sent)).toEqual(new Set(eventIds(1, 200)));
  });

  test('enabled again while others are under way: their failures cost no wait either', async () => {
    const world = await createLaneWorld(database);
    await world.log(200);
    const gate = createGate();
    const set = (disabled: boolean) => world.change({ disabled });
    let isMended = false;
    world.behave = async (_, eventId) => {
      if (isMended) return OK;
      if (eventId === 'e2') {
        await set(true);
        isMended = true;
        await set(false);
        gate.open();
        return status(404);
      }
      // Begun before, ended after.
      if (eventId === 'e3') {
        await gate.opened;
        return status(404);
      }
      return OK;
    };
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(new Set(world.sent)).toEqual(new Set(eventIds(1, 200)));
    expect(await world.lane()).toMatchObject({ state: 'healthy', cursor: 200 });
  });

  // Postgres shows the statement that waited the lane as it is now, and the webhook as it was before.
  test('sent elsewhere while a failure waits to be written down: it is probed there at once', async () => {
    const world = await createLaneWorld(database);
    await world.log(2);
    let change: ReturnType<typeof changeEndpoint> | undefined;
    world.behave = async ({ endpoint }) => {
      if (endpoint.includes('elsewhere')) return OK;
      change = changeEndpoint(world);
      await change.made;
      return status(404);
    };
    const delivered = world.deliverAll();
    await untilLockWaiters(database, 1);
    change?.commit();
    await change?.ended;
    expect(await delivered).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(['e1', 'e1', 'e2']);
  });

  test('sent elsewhere while its lane is being claimed: all deliveries go to the new address', async () => {
    const world = await createLaneWorld(database);
    await world.log(2);
    const endpoints: string[] = [];
    world.behave = ({ endpoint }) => {
      endpoints.push(endpoint);
      return OK;
    };
    const change = changeEndpoint(world);
    await change.made;
    const delivered = world.deliverAll();
    await untilLockWaiters(database, 1);
    change.commit();
    await change.ended;
    expect(await delivered).toEqual({ outcome: 'idle' });
    expect(endpoints).toEqual(['http://elsewhere.test/', 'http://elsewhere.test/']);
  });
});
