/** Activities of one instant: the newest first, for any ids of their senders, also across pages. */
import type { EventRow } from '@sluice/domain/state/loaded-state';
import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { insertEvents } from '../../../src/events/events.ts';
import { findEventAt } from '../../../src/events/event-traces.ts';
import { listActivities, type ActivityPosition } from '../../../src/people/activity-reads.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const AT_MS = Date.parse('2026-11-26T10:00:00.250Z');

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

const eventOf = (personId: number, eventId: string, receivedAtMs: number): EventRow => ({
  environmentId: 1,
  personId,
  anonymousId: null,
  eventId,
  kind: 'event',
  name: eventId,
  data: {},
  occurredAtMs: AT_MS,
  receivedAtMs,
  processedAtMs: receivedAtMs,
  envelopeNumber: undefined,
  flushIndex: undefined,
});

async function listed(personId: number, limit: number): Promise<string[]> {
  const ids: string[] = [];
  let after: ActivityPosition | undefined;
  for (;;) {
    const rows = await listActivities(database, {
      environmentId: 1,
      personId: String(personId),
      notBeforeMs: AT_MS - 1_000,
      kind: undefined,
      name: undefined,
      after,
      limit,
    });
    ids.push(...rows.map(({ eventId }) => eventId));
    after = rows.at(-1);
    if (rows.length < limit) return ids;
  }
}

test.each([1, 2, 7, 100])(
  'events of one call are listed from the last to the first, in pages of %i',
  async (limit) => {
    const person = 100 + limit;
    const ids = ['m', 'c', 'z', 'a', 'x', 'b', 'y'].map((letter) => `${letter}-${limit}`);
    await insertEvents(
      database,
      ids.map((id) => eventOf(person, id, AT_MS)),
    );
    await insertEvents(database, [eventOf(person, `a-later-${limit}`, AT_MS + 1)]);
    expect(await listed(person, limit)).toEqual([`a-later-${limit}`, ...ids.toReversed()]);
  },
);

test('events of a call of thousands of items are listed in order, even if transactions apply its parts out of order', async () => {
  const ids = Array.from({ length: 3_500 }, (_, n) => `n-${(n * 7_919) % 3_500}`);
  const events = ids.map((id, flushIndex) => ({
    ...eventOf(2, id, AT_MS),
    envelopeNumber: flushIndex < 1_000 ? 1 : flushIndex < 2_000 ? 2 : 3,
    flushIndex,
  }));
  await insertEvents(database, events.slice(2_000));
  await insertEvents(database, events.slice(0, 1_000));
  await insertEvents(database, events.slice(1_000, 2_000));
  // Intake takes no call before it has answered this one.
  await insertEvents(database, [{ ...eventOf(2, 'next', AT_MS + 4), flushIndex: 0 }]);
  expect(await listed(2, 500)).toEqual(['next', ...ids.toReversed()]);
});

test('of two flushes of one millisecond that are applied together, the second one’s are last', async () => {
  const ids = ['z', 'a', 'y', 'b', 'x', 'c'];
  await insertEvents(
    database,
    ids.map((id, n) => ({
      ...eventOf(4, id, AT_MS),
      envelopeNumber: n < 3 ? 1 : 2,
      flushIndex: n % 3,
    })),
  );
  expect(await listed(4, 10)).toEqual(ids.toReversed());
});

test('events of one operation are ordered by their ids, before the events of the next operation', async () => {
  const of = (id: string, flushIndex: number) => ({
    ...eventOf(5, id, AT_MS),
    envelopeNumber: 1,
    flushIndex,
  });
  await insertEvents(database, [of('01A', 0), of('01B', 0), of('01C', 0), of('00', 1)]);
  expect(await listed(5, 10)).toEqual(['00', '01C', '01B', '01A']);
});

test('rows of an import, which have no place in a flush, keep their order', async () => {
  const ids = Array.from({ length: 2_500 }, (_, n) => `i-${(n * 7_919) % 2_500}`);
  await insertEvents(
    database,
    ids.map((id) => eventOf(6, id, AT_MS)),
  );
  expect(await listed(6, 1_000)).toEqual(ids.toReversed());
});

test('an event is found by the millisecond in which it came', async () => {
  await insertEvents(database, [eventOf(3, 'traced-1', AT_MS), eventOf(3, 'traced-2', AT_MS)]);
  for (const id of ['traced-1', 'traced-2'])
    expect(await findEventAt(database, 1, id, new Date(AT_MS))).toMatchObject({ name: id });
  expect(await findEventAt(database, 1, 'traced-2', new Date(AT_MS + 1))).toBeUndefined();
  await insertEvents(database, [{ ...eventOf(3, 'traced-last', AT_MS), flushIndex: 49_999 }]);
  expect(await findEventAt(database, 1, 'traced-last', new Date(AT_MS))).toBeDefined();
});
