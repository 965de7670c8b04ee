/**
 * An operator's actions on a lane while workers drain it: every delivery stays, in order, and each writer keeps the
 * other's writes.
 */
import type { Database } from '@sluice/database/connection/connection';
import { listDeliveries } from '@sluice/database/delivery/delivery-reads';
import { probeNow } from '@sluice/database/replays/lane-actions';
import { findLaneState } from '@sluice/database/delivery/lane-states';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  createFailingLane,
  createGate,
  createLaneWorld,
  endLeases,
  eventIds,
  holdAnswers,
  HOUR_MS,
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

describe('probe now', () => {
  test('lets the head be tried at once, and the blocked deliveries follow in order', async () => {
    const world = await createFailingLane(database);
    expect(await world.deliver()).toMatchObject({ outcome: 'waiting' });
    expect(await probeNow(database, world.key, BY_TEST, world.nowMs)).toBe('due');
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(2, 5));
  });

  test('that fails starts the next wait from there', async () => {
    const world = await createFailingLane(database);
    world.behave = () => status(500);
    await probeNow(database, world.key, BY_TEST, world.nowMs);
    expect(await world.deliverAll()).toMatchObject({ outcome: 'waiting' });
    expect(world.sent).toEqual(['e2']);
    expect(await world.lane()).toMatchObject({ cursor: 1, state: 'failing' });
  });

  test('while a worker probes does not start a second probe, and the outcome of the first is kept', async () => {
    const world = await createFailingLane(database);
    const gate = holdAnswers(world, status(500));
    await probeNow(database, world.key, BY_TEST, world.nowMs);
    const probing = world.deliver();
    await until(() => world.sent.length === 1);
    expect(await probeNow(database, world.key, BY_TEST, world.nowMs)).toBe('in_progress');
    gate.open();
    expect(await probing).toMatchObject({ outcome: 'waiting' });
    expect(world.sent).toEqual(['e2']);
    expect(await world.attempts(2)).toHaveLength(2);
  });

  test('of a healthy, a disabled or an unknown webhook leaves the lane as it is', async () => {
    const world = await createLaneWorld(database);
    expect(await probeNow(database, world.key, BY_TEST, world.nowMs)).toBe('not_failing');
    const failing = await createFailingLane(database);
    const before = await failing.lane();
    await failing.change({ disabled: true });
    expect(await probeNow(database, failing.key, BY_TEST, failing.nowMs)).toBe('disabled');
    expect(await failing.lane()).toEqual({ ...before, isPaused: true });
    const unknown = { ...failing.key, webhookId: 1_000_000 };
    expect(await probeNow(database, unknown, BY_TEST, failing.nowMs)).toBe('not_found');
  });
});

describe('skip head', () => {
  test('abandons the head with its reason, and the blocked deliveries follow in order, from a concurrency limit of one', async () => {
    const world = await createFailingLane(database);
    expect(await skip(world)).toBe('skipped');
    expect(await world.lane()).toMatchObject({ state: 'healthy', cursor: 2, concurrencyLimit: 1 });
    expect(await world.attempts(2)).toMatchObject([
      { attempt: 1, outcome: 'retrying', status: 500 },
      { attempt: 2, outcome: 'abandoned', failure: 'skipped', failureMessage: 'by a test' },
    ]);
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(3, 5));
    expect(await skip(world)).toBe('not_failing');
  });

  test('names the head that was seen: another one stays', async () => {
    const world = await createFailingLane(database);
    const before = await world.lane();
    expect(await skip(world, 3)).toBe('not_head');
    expect(await skip(world, 1)).toBe('not_head');
    expect(await world.lane()).toEqual(before);
    expect(await world.attempts(3)).toMatchObject([{ outcome: 'retrying' }]);
  });

  test('is refused while the head is being tried, whose success then stands', async () => {
    const world = await createFailingLane(database);
    const gate = holdAnswers(world, OK);
    await probeNow(database, world.key, BY_TEST, world.nowMs);
    const probing = world.deliverAll();
    await until(() => world.sent.length === 1);
    expect(await skip(world)).toBe('in_progress');
    gate.open();
    expect(await probing).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(2, 5));
    expect(await world.attempts(2)).toMatchObject([
      { outcome: 'retrying' },
      { outcome: 'delivered' },
    ]);
  });

  test('takes the lane from a worker whose lease has run out, and the outcome of that worker is refused', async () => {
    const world = await createFailingLane(database);
    const gate = createGate();
    world.behave = async (_, eventId) => {
      if (eventId === 'e2') await gate.opened;
      return OK;
    };
    await probeNow(database, world.key, BY_TEST, world.nowMs);
    const frozen = world.deliver();
    await until(() => world.sent.length === 1);
    await endLeases(world);
    expect(await skip(world)).toBe('skipped');
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    gate.open();
    expect(await frozen).toEqual({ outcome: 'fenced' });
    expect(world.sent).toEqual(eventIds(2, 5));
    expect(await statesOf(world)).toEqual([
      'e1 event delivered 1',
      'e2 event abandoned 2',
      'e3 event delivered 2',
      'e4 event delivered 1',
      'e5 event delivered 1',
    ]);
  });

  test('stands when such a worker comes back before anybody else has claimed the lane', async () => {
    const world = await createFailingLane(database);
    const gate = holdAnswers(world, status(500));
    await probeNow(database, world.key, BY_TEST, world.nowMs);
    const frozen = world.deliver();
    await until(() => world.sent.length === 1);
    await endLeases(world);
    expect(await skip(world)).toBe('skipped');
    gate.open();
    expect(await frozen).toEqual({ outcome: 'fenced' });
    expect(await world.lane()).toMatchObject({ state: 'healthy', cursor: 2 });
    expect(await world.attempts(2)).toHaveLength(2);
    world.behave = () => OK;
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(2, 5));
  });

  test('asked for by many at once is done once', async () => {
    const world = await createFailingLane(database);
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => skip(world)));
    expect(outcomes.toSorted()).toEqual([
      ...Array.from({ length: 7 }, () => 'not_failing'),
      'skipped',
    ]);
    expect(await world.attempts(2)).toHaveLength(2);
    expect(await world.lane()).toMatchObject({ cursor: 2 });
  });

  test('of a disabled webhook keeps the blocked deliveries', async () => {
    const world = await createFailingLane(database);
    const change = (disabled: boolean) => world.change({ disabled });
    await change(true);
    expect(await skip(world)).toBe('skipped');
    expect(await world.deliver()).toEqual({ outcome: 'paused' });
    await change(false);
    expect(await world.deliverAll()).toEqual({ outcome: 'idle' });
    expect(world.sent).toEqual(eventIds(3, 5));
  });
});

describe('the state', () => {
  test('counts unfinished deliveries, without the ones that were delivered out of order', async () => {
    const world = await createLaneWorld(database);
    await world.log(20);
    world.behave = (_, eventId) => (eventId === 'e3' ? status(404) : OK);
    await world.deliverAll();
    const report = await world.lane();
    const finished = (await listDeliveries(database, world.key, 100)).filter(
      ({ state }) => state === 'delivered' || state === 'abandoned',
    );
    expect(report).toMatchObject({ cursor: 2, state: 'failing' });
    expect(await findLaneState(database, world.key)).toEqual({
      lastDeliveredAt: null,
      webhookId: world.key.webhookId,
      state: 'failing',
      isPaused: false,
      isHeld: false,
      unfinishedCount: 20 - finished.length,
      nextProbeAt: new Date(world.nowMs + 3 + HOUR_MS),
      head: {
        sequence: 3,
        eventId: 'e3',
        eventType: 'customer_subscribed',
        attempts: 1,
        firstAttemptAt: new Date(world.nowMs),
        lastAttemptAt: new Date(world.nowMs),
        status: 404,
        failure: 'status',
        failureMessage: null,
      },
    });
  });
});
