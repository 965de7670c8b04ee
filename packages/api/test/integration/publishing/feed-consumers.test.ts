/** Consumers of a feed that are killed at any point: they miss no event of any person, and see them in each person's order. */
import type { AddressInfo } from 'node:net';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

const PEOPLE = [1, 2, 3, 4, 5];
const EVENT_COUNT = 60;

let api: ApiUnderTest;
let port: number;
let name: string;
let count = 0;
let logged: Record<string, number>;
let random: () => number;
beforeAll(async () => {
  api = await startApi();
  await api.app.listen({ port: 0, host: '127.0.0.1' });
  port = (api.app.server.address() as AddressInfo).port;
});
beforeEach(async () => {
  name = `feed-${++count}`;
  logged = {};
  random = seededRandom(11);
  await api.call('PUT', `/v1/feeds/${name}`, { body: { events: ['customer_subscribed'] } });
});
afterAll(() => api.close());

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
    api.database,
    Array.from({ length: howMany }, () => {
      const personId = PEOPLE[Math.floor(random() * PEOPLE.length)]!;
      const place = (logged[personId] ?? 0) + 1;
      logged[personId] = place;
      return {
        environmentId: api.a.environmentId,
        eventId: `${name}-${personId}-${place}`,
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
      const answer = await api.call('GET', `/v1/feeds/${name}?wait=0&cursor=${saved}&limit=5`);
      expect(answer.statusCode, answer.body).toBe(200);
      const { events, cursor } = answer.json<{ events: FeedEntry[]; cursor: string }>();
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
  const latest = (await api.call('GET', `/v1/feeds/${name}?wait=0&cursor=latest`)).json<{
    cursor: string;
  }>().cursor;
  if (after === latest) return [];
  const gone = new AbortController();
  const answer = await fetch(`http://127.0.0.1:${port}/v1/feeds/${name}`, {
    signal: gone.signal,
    headers: {
      authorization: `Bearer ${api.a.key}`,
      accept: 'text/event-stream',
      ...(after && { 'last-event-id': after }),
    },
  });
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let seen: Seen[] = [];
  while (seen.length < howMany && seen.at(-1)?.cursor !== latest) {
    text += (await reader.read()).value ?? '';
    seen = [...text.matchAll(/^data: (.*)\n/gm)].map(([, line = '']) =>
      seenOf(JSON.parse(line) as FeedEntry),
    );
  }
  gone.abort();
  return seen.slice(0, howMany);
}
