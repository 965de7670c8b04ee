/** Activities of one instant: the newest first, whatever ids their senders gave them, also across pages. */
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
  'what came in one call is listed from its last to its first, in pages of %i',
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

test('more than a millisecond has places for stay in their millisecond', async () => {
  const ids = Array.from({ length: 1_200 }, (_, n) => `n-${n}`);
  await insertEvents(database, [
    ...ids.map((id) => eventOf(2, id, AT_MS)),
    eventOf(2, 'next', AT_MS + 1),
  ]);
  const found = await listed(2, 500);
  expect(found[0]).toBe('next');
  expect(found.slice(-999)).toEqual(ids.slice(0, 999).toReversed());
  expect(new Set(found).size).toBe(1_201);
});

test('an event is found by the millisecond in which it came', async () => {
  await insertEvents(database, [eventOf(3, 'traced-1', AT_MS), eventOf(3, 'traced-2', AT_MS)]);
  for (const id of ['traced-1', 'traced-2'])
    expect(await findEventAt(database, 1, id, new Date(AT_MS))).toMatchObject({ name: id });
  expect(await findEventAt(database, 1, 'traced-2', new Date(AT_MS + 1))).toBeUndefined();
});
