/** A worker's counts by minute, and the times of their writes. */
import {
  ALL_NAMES,
  ALL_WEBHOOKS,
  type DeliveryMinute,
  type EventMinute,
} from '@sluice/database/maintenance/minute-statistics';
import type { Operation } from '@sluice/domain/operations/operation';
import { expect, test } from 'vitest';
import { MinuteStatistics } from '../../src/process/minute-statistics.ts';

const MINUTE_MS = 60_000;
const LANE = { environmentId: 1, webhookId: 3 };

const tracked = (name: string, environmentId = 1): Operation =>
  ({ type: 'event.track', environmentId, name }) as Operation;
const identified = { type: 'person.identify', environmentId: 1 } as Operation;
const issue = (code: string, count: number): Operation =>
  ({
    type: 'issue.record',
    environmentId: 1,
    source: 'track.v1',
    count,
    issue: { code },
  }) as Operation;

function world() {
  const clock = { nowMs: 10 * MINUTE_MS };
  const statistics = new MinuteStatistics(() => clock.nowMs);
  const write = async () => {
    const written: { events: EventMinute[]; deliveries: DeliveryMinute[] } = {
      events: [],
      deliveries: [],
    };
    await statistics.write(async (events, deliveries) => {
      written.events.push(...events);
      written.deliveries.push(...deliveries);
    });
    return written;
  };
  return { clock, statistics, write };
}

test('operations count by their name and among all, and issues only if the value was not taken', async () => {
  const { statistics, write } = world();
  statistics.countOperations([
    ...[tracked('Order'), tracked('Order'), identified, tracked('Order', 2)],
    ...[issue('required', 3), issue('number_rounded', 5)],
  ]);
  const { events } = await write();
  const of = (environmentId: number) =>
    events
      .filter((row) => row.environmentId === environmentId)
      .map(({ name, accepted, refused }) => [name, accepted, refused]);
  expect(of(1)).toEqual([
    [ALL_NAMES, 3, 3],
    ['Order', 2, 0],
    ['person.identify', 1, 0],
    ['track.v1', 0, 3],
  ]);
  expect(of(2)).toEqual([
    [ALL_NAMES, 1, 0],
    ['Order', 1, 0],
  ]);
  expect(events.every(({ minuteMs }) => minuteMs === 10 * MINUTE_MS)).toBe(true);
});

test('attempts count for their webhook and for all, and answered ones with their time', async () => {
  const { statistics, write } = world();
  statistics.countAttempt(LANE, { failure: null, status: 200, durationMs: 3 });
  statistics.countAttempt(LANE, { failure: 'status', status: 500, durationMs: 3 });
  statistics.countAttempt(LANE, { failure: 'timeout', status: null, durationMs: 4_000 });
  const { deliveries } = await write();
  expect(deliveries.map(({ webhookId }) => webhookId)).toEqual([3, ALL_WEBHOOKS]);
  for (const row of deliveries) {
    expect(row).toMatchObject({ delivered: 1, failed: 2 });
    expect(row.latencyCounts.reduce((a, b) => a + b, 0)).toBe(2);
    expect(row.latencyCounts[2]).toBe(2);
  }
});

test('a minute is written with its whole sum as long as it grows, then it is forgotten', async () => {
  const { clock, statistics, write } = world();
  statistics.countOperations([identified]);
  expect((await write()).events).toHaveLength(2);
  expect((await write()).events).toEqual([]);
  statistics.countOperations([identified]);
  expect((await write()).events[0]).toMatchObject({ accepted: 2 });
  clock.nowMs += MINUTE_MS;
  statistics.countOperations([identified]);
  expect((await write()).events).toMatchObject([
    { minuteMs: 11 * MINUTE_MS, accepted: 1 },
    { minuteMs: 11 * MINUTE_MS },
  ]);
});

test('counts that could not be written are written the next time, with the counts that came meanwhile', async () => {
  const { statistics, write } = world();
  statistics.countOperations([identified]);
  const failing = statistics.write(() => {
    statistics.countOperations([identified]);
    return Promise.reject(new Error('Postgres is away'));
  });
  await expect(failing).rejects.toThrow('Postgres is away');
  expect((await write()).events[0]).toMatchObject({ accepted: 2 });
});

test('names that are made up without end fill no table, and no name keeps the others from being written', async () => {
  const { statistics, write } = world();
  statistics.countOperations(Array.from({ length: 500 }, (_, n) => tracked(`name ${n}`)));
  const { events } = await write();
  expect(events.length).toBeLessThanOrEqual(52);
  expect(events[0]).toMatchObject({ name: ALL_NAMES, accepted: 500 });
  const hostile = world();
  hostile.statistics.countOperations([
    tracked('a\0b'),
    tracked(`${'x'.repeat(199)}\u{1F600}`),
    tracked('x'.repeat(900)),
  ]);
  const names = (await hostile.write()).events.map(({ name }) => name);
  expect(names).toHaveLength(4);
  for (const name of names) {
    expect(name.length).toBeLessThanOrEqual(200);
    expect(name.isWellFormed() && !name.includes('\0')).toBe(true);
  }
});
