/** Server-sent events of a feed. They follow it, within a bound of memory, until it is gone. */
import { listFeedEvents } from '@sluice/database/feeds/feeds';
import { expect, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { eventsIn, useFeeds } from './feed-world.ts';

vi.mock(import('@sluice/database/feeds/feeds'), async (original) => {
  const feeds = await original();
  return { ...feeds, listFeedEvents: vi.fn<typeof feeds.listFeedEvents>(feeds.listFeedEvents) };
});

const world = useFeeds();
const { page, log, stream } = world;

test('a stream continues after the last event of its reader, and sends new events as they arrive', async () => {
  const ids = await log(3);
  const { events } = await page('&limit=1');
  const reader = await stream(events[0]!.cursor);
  expect(reader.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const until = (howMany: number) => reader.until((text) => eventsIn(text).length >= howMany);
  await until(2);
  const more = await log(2);
  const text = await until(4);
  expect(eventsIn(text).map(({ event }) => event.event_id)).toEqual([...ids.slice(1), ...more]);
  expect(text).toContain(`id: ${(await page()).cursor}\n`);
  reader.cut();
}, 60_000);

test('a stream keeps at most 256 KB of events for its reader', async () => {
  const ids = await log(12, { text: 'x'.repeat(50_000) });
  expect((await page()).events).toHaveLength(12);
  vi.mocked(listFeedEvents).mockClear();
  const reader = await stream();
  await reader.until((text) => text.includes(`"${ids.at(-1)}"`));
  reader.cut();
  const pages = await Promise.all(
    vi.mocked(listFeedEvents).mock.results.map(({ value }) => value as Promise<{ body: string }[]>),
  );
  const sizes = pages.map((events) => events.reduce((sum, { body }) => sum + body.length, 0));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(256 * 1_024);
  expect(Math.max(...sizes)).toBeGreaterThan(200_000);
}, 60_000);

test('a stream ends and a wait is answered when the feed is deleted, though its log is not cleared yet', async () => {
  await log(1);
  const reader = await stream();
  await reader.until((text) => text.includes('data: '));
  const waiting = world.api.call('GET', `/v1/feeds/${world.name}?wait=60&cursor=latest`);
  expect((await world.api.call('DELETE', `/v1/feeds/${world.name}`)).statusCode).toBe(200);
  await reader.end();
  expectProblem(await waiting, 404, 'not_found');
}, 60_000);
