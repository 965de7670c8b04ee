/** Consumers of a feed that are killed at any point: they miss no event of any person, and see them in each person's order. */
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { beforeEach, expect, test } from 'vitest';
import { eventsIn, useFeeds } from './feed-world.ts';

const PEOPLE = [1, 2, 3, 4, 5];
const EVENT_COUNT = 60;

const world = useFeeds();
const { page, stream } = world;
let logged: Record<string, number>;
let random: () => number;
beforeEach(() => {
  logged = {};
  random = seededRandom(11);
});

interface Seen {
  readonly cursor: string;
  readonly person: string;
  /** Place among the person's events. */
  readonly place: number;
}
interface FeedEntry {
  readonly cursor: string;
  readonly event: { readonly data: { readonly customer_id: string; readonly place: number } };
}
const seenOf = ({ cursor, event: { data } }: FeedEntry): Seen => ({
  cursor,
  person: data.customer_id,
  place: data.place,
});

/** Logs so many events, each of somebody. */
async function log(howMany: number): Promise<void> {
  await appendDeliveries(
    world.api.database,
    Array.from({ length: howMany }, () => {
      const personId = PEOPLE[Math.floor(random() * PEOPLE.length)]!;
      const place = (logged[personId] ?? 0) + 1;
      logged[personId] = place;
      return {
        environmentId: world.api.a.environmentId,
        eventId: `${world.name}-${personId}-${place}`,
        eventType: 'customer_subscribed',
        objectType: 'customer',
        metric: 'subscribed',
        occurredAtMs: 0,
        personId,
        data: { customer_id: String(personId), place },
      };
    }),
  );
}

/** Of each person the events come in order, from 1 on; one that was not acknowledged may come again, and those after it. */
function expectAll(seen: readonly Seen[]): void {
  const reached: Record<string, number> = {};
  for (const { person, place } of seen) {
    expect(place).toBeLessThanOrEqual((reached[person] ?? 0) + 1);
    reached[person] = Math.max(reached[person] ?? 0, place);
  }
  expect(reached).toEqual(logged);
}

test('by pages, while events of several people arrive', async () => {
  const seen: Seen[] = [];
  let saved = '';
  for (let left = EVENT_COUNT, isEnd = false; !isEnd;) {
    const more = Math.min(left, 6);
    await log(more);
    left -= more;
    // One run of the consumer, until it is killed: within a page, or before it has saved its cursor.
    for (;;) {
      const { events, cursor } = await page<FeedEntry>(`&cursor=${saved}&limit=5`);
      const dealtWith = random() < 0.3 ? events.slice(0, 2) : events;
      seen.push(...dealtWith.map(seenOf));
      if (dealtWith.length < events.length || random() < 0.3) break;
      saved = cursor;
      isEnd = events.length === 0 && left === 0;
      if (events.length === 0) break;
    }
  }
  expectAll(seen);
  expect(seen.length).toBeGreaterThan(EVENT_COUNT);
});

test('by server-sent events, which continue after the Last-Event-ID of the consumer', async () => {
  const seen: Seen[] = [];
  let saved = '';
  let left = EVENT_COUNT;
  const isEnd = () =>
    left === 0 && Object.values(logged).reduce((sum, place) => sum + place) === placesOf(seen);
  while (!isEnd()) {
    const more = Math.min(left, 6);
    await log(more);
    left -= more;
    const killAfter = 1 + Math.floor(random() * 7);
    const run = await readStream(saved, killAfter);
    seen.push(...run);
    // The last one is dealt with, but its id may not be saved.
    const last = random() < 0.5 ? run.at(-1) : run.at(-2);
    saved = last?.cursor ?? saved;
  }
  expectAll(seen);
  expect(seen.length).toBeGreaterThan(EVENT_COUNT);
});

const placesOf = (seen: readonly Seen[]): number =>
  new Set(seen.map(({ person, place }) => `${person} ${place}`)).size;

/** The stream after a cursor, up to so many events or the last one of the feed; then it is cut. */
async function readStream(after: string, howMany: number): Promise<Seen[]> {
  const { cursor: latest } = await page('&cursor=latest');
  if (after === latest) return [];
  const reader = await stream(after);
  const seenIn = (text: string): Seen[] => eventsIn<FeedEntry>(text).map(seenOf);
  const text = await reader.until((all) => {
    const seen = seenIn(all);
    return seen.length >= howMany || seen.at(-1)?.cursor === latest;
  });
  reader.cut();
  return seenIn(text).slice(0, howMany);
}
