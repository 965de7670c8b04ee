/** A feed is read at its reader's pace: every event at least once, in order, as long as it is kept, by its workspace alone. */
import type { AddressInfo } from 'node:net';
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import {
  clearForgotten,
  forgetFeedChunks,
  measureFeedChunk,
} from '@sluice/database/feeds/feed-retention';
import { findFeed, listFeedEvents } from '@sluice/database/feeds/feeds';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest, type Tenant } from '../support/api-under-test.ts';

vi.mock(import('@sluice/database/feeds/feeds'), async (original) => {
  const feeds = await original();
  return { ...feeds, listFeedEvents: vi.fn<typeof feeds.listFeedEvents>(feeds.listFeedEvents) };
});

let api: ApiUnderTest;
let name: string;
let count = 0;
let eventCount = 0;
let port: number;
beforeAll(async () => {
  api = await startApi();
  await api.app.listen({ port: 0, host: '127.0.0.1' });
  port = (api.app.server.address() as AddressInfo).port;
});
beforeEach(async () => {
  name = `feed-${++count}`;
  await put(name);
});
afterAll(() => api.close());

interface Page {
  readonly events: { cursor: string; event_type: string; event: { event_id: string } }[];
  readonly cursor: string;
}
const put = (
  feed: string,
  body: object = { events: ['customer_subscribed'] },
  tenant: Tenant = api.a,
) => api.call('PUT', `/v1/feeds/${feed}`, { key: tenant.key, body });
const read = (query = '', key = api.a.key) =>
  api.call('GET', `/v1/feeds/${name}?wait=0${query}`, { key });
const page = async (query = ''): Promise<Page> => {
  const answer = await read(query);
  expect(answer.statusCode, answer.body).toBe(200);
  return answer.json<Page>();
};
const idsOf = ({ events }: Page) => events.map(({ event }) => event.event_id);

const measure = (feed: Parameters<typeof measureFeedChunk>[1], countMax: number) =>
  api.database
    .transaction()
    .execute((transaction) => measureFeedChunk(transaction, feed, countMax));

/** Logs so many events. @returns their ids. */
async function log(
  howMany: number,
  tenant: Tenant = api.a,
  database: DatabaseOrTransaction = api.database,
  text = '',
): Promise<string[]> {
  const ids = Array.from({ length: howMany }, () => `e${++eventCount}`);
  await appendDeliveries(
    database,
    ids.map((eventId) => ({
      environmentId: tenant.environmentId,
      eventId,
      eventType: 'customer_subscribed',
      objectType: 'customer',
      metric: 'subscribed',
      occurredAtMs: 0,
      data: { customer_id: eventId, ...(text && { text }) },
    })),
  );
  return ids;
}

test('events come in order, each with a cursor that the next page begins after', async () => {
  const ids = await log(5);
  const first = await page('&limit=2');
  expect(idsOf(first)).toEqual(ids.slice(0, 2));
  expect(first.cursor).toBe(first.events[1]?.cursor);
  expect(first.events[0]).toMatchObject({
    event_type: 'customer_subscribed',
    event: { object_type: 'customer', metric: 'subscribed', data: { customer_id: ids[0] } },
  });
  expect(idsOf(await page(`&cursor=${first.cursor}`))).toEqual(ids.slice(2));
  expect(idsOf(await page(`&cursor=${first.events[0]?.cursor}&limit=1`))).toEqual([ids[1]]);
  const end = await page('&cursor=latest');
  expect(end.events).toEqual([]);
  const [next] = await log(1);
  expect(idsOf(await page(`&cursor=${end.cursor}`))).toEqual([next]);
});

test('a consumer that is killed at any point misses no event and repeats only unacknowledged events', async () => {
  const ids = await log(40);
  const random = seededRandom(7);
  const done: string[] = [];
  let saved = '';
  // Each run of the consumer ends at a point of its own: before a page is asked for, while it works on it, or before it
  // has saved its cursor.
  for (let run = 0; run < 200 && done.at(-1) !== ids.at(-1); run++) {
    const begun = done.length;
    for (;;) {
      if (random() < 0.2) break;
      const given = await page(`&cursor=${saved}&limit=4`);
      const events = random() < 0.3 ? given.events.slice(0, 2) : given.events;
      done.push(...events.map(({ event }) => event.event_id));
      if (events.length < given.events.length || random() < 0.2) break;
      if (given.events.length === 0) break;
      saved = given.cursor;
    }
    expect(done.length - begun).toBeLessThanOrEqual(40);
  }
  expect([...new Set(done)]).toEqual(ids);
});

test('a page waits for new events, and is empty when its time is over', async () => {
  const { cursor } = await page('&cursor=latest');
  const waiting = api.call('GET', `/v1/feeds/${name}?wait=60&cursor=${cursor}`);
  const [id] = await log(1);
  expect(idsOf((await waiting).json<Page>())).toEqual([id]);
  const { cursor: end } = await page('&cursor=latest');
  const none = await api.call('GET', `/v1/feeds/${name}?wait=1&cursor=${end}`);
  expect(none.json()).toEqual({ events: [], cursor: end });
});

test('workers that measure a feed at the same time count each event once', async () => {
  await log(2);
  const feed = (await findFeed(api.database, api.a.environmentId, name))!;
  await api.database.transaction().execute(async (transaction) => {
    expect(await measureFeedChunk(transaction, feed, 10)).toBe(2);
    await log(1);
    // The second worker sees one more event, and does not see the chunk of the first one.
    expect(await measure(feed, 10)).toBe(0);
  });
  expect(await measure(feed, 10)).toBe(1);
  const { rows } = await sql`
    select (select sum(size_bytes) from feed_chunks c
             where c.environment_id = ${feed.environmentId} and c.webhook_id = ${feed.webhookId}) as measured,
           (select sum(octet_length(body)) from delivery_log l
             where l.environment_id = ${feed.environmentId} and l.webhook_id = ${feed.webhookId}) as logged`.execute(
    api.database,
  );
  const [{ measured, logged }] = rows as [{ measured: string; logged: string }];
  expect(Number(measured)).toBe(Number(logged));
});

test('a cursor before forgotten events is 410 with the oldest cursor that remains', async () => {
  await log(3);
  const { cursor: early } = await page('&limit=1');
  const feed = (await findFeed(api.database, api.a.environmentId, name))!;
  await measure(feed, 2);
  await measure(feed, 2);
  // Room for the last chunk alone, which has one event.
  const bounds = { ageSecondsMax: 3_600, sizeBytesMax: 200 };
  await forgetFeedChunks(api.database, api.a.environmentId, bounds);
  await clearForgotten(api.database, feed, 100);
  const problem = expectProblem(
    await read(`&cursor=${early}`),
    410,
    'cursor_expired',
  ) as unknown as {
    meta: { oldest: string };
  };
  const rest = await page(`&cursor=${problem.meta.oldest}`);
  expect(rest.events).toHaveLength(1);
  expect(await page()).toEqual(rest);
  await forgetFeedChunks(api.database, api.a.environmentId, { ...bounds, ageSecondsMax: -1 });
  expect((await page()).events).toEqual([]);
});

test.each([
  ['x', 'a word'],
  ['1', 'a number alone'],
  ['1.-1', 'a number below nothing'],
])('%s, %s, is no cursor', async (cursor) => {
  const { errors } = expectProblem(await read(`&cursor=${cursor}`), 400, 'invalid_request');
  expect(errors.map((error) => error.field)).toEqual(['cursor']);
});

test('a cursor ahead of the feed is refused, and one of a feed that was deleted and made again is gone', async () => {
  await log(2);
  const { cursor } = await page();
  const ahead = cursor.replace(/\.\d+$/, '.99');
  expectProblem(await read(`&cursor=${ahead}`), 400, 'invalid_request');
  expect((await api.call('DELETE', `/v1/feeds/${name}`)).statusCode).toBe(200);
  expectProblem(await read(`&cursor=${cursor}`), 404, 'not_found');
  await put(name);
  expectProblem(await read(`&cursor=${cursor}`), 410, 'cursor_expired');
  expect((await page()).events).toEqual([]);
});

test('a feed gets only its chosen event types, and a change applies to later events', async () => {
  await put(name, { events: ['email_sent'] });
  await log(1);
  expect((await page()).events).toEqual([]);
  await put(name);
  expect(await log(1)).toEqual(idsOf(await page()));
  const listed = (await api.call('GET', '/v1/feeds')).json<{
    feeds: { name: string; latest: string }[];
  }>();
  expect(listed.feeds.find((feed) => feed.name === name)).toMatchObject({
    events: ['customer_subscribed'],
    latest: (await page()).cursor,
  });
});

test('a change keeps the settings that it does not name, and a new feed needs its events', async () => {
  const all = {
    events: ['event', 'page'],
    event_names: ['paid'],
    attribute_filters: [{ field: 'data.name', operator: 'exists' }],
    full_resolution: true,
    with_content: true,
    with_imports: true,
    with_late: true,
    with_person_attributes: true,
  };
  expect((await put(name, all)).json()).toMatchObject(all);
  expect((await put(name, {})).json()).toMatchObject(all);
  expect((await put(name, { events: ['event'] })).json()).toMatchObject({
    ...all,
    events: ['event'],
  });
  const back = { event_names: null, attribute_filters: [], with_late: false };
  expect((await put(name, back)).json()).toMatchObject({
    ...all,
    events: ['event'],
    ...back,
    attribute_filters: null,
  });
  const { errors } = expectProblem(await put(`${name}-new`, {}), 400, 'invalid_request');
  expect(errors.map(({ field }) => field)).toEqual(['events']);
  expectProblem(await api.call('GET', `/v1/feeds/${name}-new`), 404, 'not_found');
});

test('a feed sends no requests, and no call on webhooks finds it', async () => {
  const [id = ''] = await log(1);
  const { webhookId } = (await findFeed(api.database, api.a.environmentId, name))!;
  expect(api.woken.filter((lane) => lane.webhookId === webhookId)).toEqual([]);
  const path = `/v1/reporting_webhooks/${webhookId}`;
  expectProblem(await api.call('GET', path), 404, 'not_found');
  expectProblem(await api.call('PUT', path, { body: { disabled: false } }), 404, 'not_found');
  expectProblem(await api.call('DELETE', path), 404, 'not_found');
  expectProblem(await api.call('GET', `${path}/secrets`), 404, 'not_found');
  const secret = { body: { overlap_seconds: 0 } };
  expectProblem(await api.call('POST', `${path}/secrets`, secret), 404, 'not_found');
  for (const body of [{ since: 0 }, { since: 0, dry_run: true }])
    expectProblem(await api.call('POST', `${path}/replays`, { body }), 404, 'not_found');
  for (const part of ['state', 'deliveries', 'deliveries/1'])
    expectProblem(await api.call('GET', `${path}/${part}`), 404, 'not_found');
  for (const action of ['probe', 'deliveries/1/resend'])
    expectProblem(await api.call('POST', `${path}/${action}`), 404, 'not_found');
  const sample = { body: { event_type: 'email_sent' } };
  expectProblem(await api.call('POST', `${path}/test`, sample), 404, 'not_found');
  const skip = { body: { sequence: 1 } };
  expectProblem(await api.call('POST', `${path}/skip_head`, skip), 404, 'not_found');
  const ofWebhook = await api.call('GET', `/v1/deliveries?webhook_id=${webhookId}`);
  expect(ofWebhook.body).not.toContain(id);
  // The trace has the event alone: a feed makes no delivery.
  const { trace } = (await api.call('GET', `/v1/events/${id}/trace`)).json();
  expect(trace?.deliveries ?? []).toEqual([]);
  const listed = (await api.call('GET', '/v1/reporting_webhooks')).json<{
    reporting_webhooks: { id: number }[];
  }>();
  expect(listed.reporting_webhooks.map((webhook) => webhook.id)).not.toContain(webhookId);
});

test('a workspace cannot read the feed of another workspace, by its name or by its cursor', async () => {
  await log(1);
  expectProblem(await read('', api.b.key), 404, 'not_found');
  const { cursor } = await page();
  await put(name, undefined, api.b);
  expectProblem(await read(`&cursor=${cursor}`, api.b.key), 410, 'cursor_expired');
  expect((await read('', api.b.key)).json<Page>().events).toEqual([]);
  expect((await api.call('DELETE', `/v1/feeds/${name}`, { key: api.b.key })).statusCode).toBe(200);
  expect((await page()).events).toHaveLength(1);
});

test('a stream continues after the last event of its reader, and sends new events as they arrive', async () => {
  const ids = await log(3);
  const { events } = await page('&limit=1');
  const gone = new AbortController();
  const answer = await fetch(`http://127.0.0.1:${port}/v1/feeds/${name}`, {
    signal: gone.signal,
    headers: {
      authorization: `Bearer ${api.a.key}`,
      accept: 'text/event-stream',
      'last-event-id': events[0]!.cursor,
    },
  });
  expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const seen = (): string[] =>
    // Only whole lines: the end of one may still be on its way.
    [...text.matchAll(/^data: (.*)\n/gm)].map(([, data = '']) => JSON.parse(data).event.event_id);
  const until = async (howMany: number): Promise<void> => {
    while (seen().length < howMany) text += (await reader.read()).value ?? '';
  };
  await until(2);
  const more = await log(2);
  await until(4);
  expect(seen()).toEqual([...ids.slice(1), ...more]);
  expect(text).toContain(`id: ${(await page()).cursor}\n`);
  gone.abort();
}, 60_000);

test('a stream keeps at most 256 KB of events for its reader', async () => {
  const ids = await log(12, api.a, api.database, 'x'.repeat(50_000));
  expect((await page()).events).toHaveLength(12);
  vi.mocked(listFeedEvents).mockClear();
  const gone = new AbortController();
  const answer = await fetch(`http://127.0.0.1:${port}/v1/feeds/${name}`, {
    signal: gone.signal,
    headers: { authorization: `Bearer ${api.a.key}`, accept: 'text/event-stream' },
  });
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes(`"${ids.at(-1)}"`)) text += (await reader.read()).value ?? '';
  gone.abort();
  const pages = await Promise.all(
    vi.mocked(listFeedEvents).mock.results.map(({ value }) => value as Promise<{ body: string }[]>),
  );
  const sizes = pages.map((events) => events.reduce((sum, { body }) => sum + body.length, 0));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(256 * 1_024);
  expect(Math.max(...sizes)).toBeGreaterThan(200_000);
}, 60_000);

test('a stream ends and a wait is answered when the feed is deleted, though its log is not cleared yet', async () => {
  await log(1);
  const answer = await fetch(`http://127.0.0.1:${port}/v1/feeds/${name}`, {
    headers: { authorization: `Bearer ${api.a.key}`, accept: 'text/event-stream' },
  });
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('data: ')) text += (await reader.read()).value ?? '';
  const waiting = api.call('GET', `/v1/feeds/${name}?wait=60&cursor=latest`);
  expect((await api.call('DELETE', `/v1/feeds/${name}`)).statusCode).toBe(200);
  for (;;) if ((await reader.read()).done) break;
  expectProblem(await waiting, 404, 'not_found');
}, 60_000);

test('a waiting reader gets 410 with the oldest cursor if all events are forgotten', async () => {
  await log(2);
  const feed = (await findFeed(api.database, api.a.environmentId, name))!;
  const { cursor } = await page();
  const waiting = api.call('GET', `/v1/feeds/${name}?wait=60&cursor=${cursor}`);
  await api.database.transaction().execute(async (transaction) => {
    await log(1, api.a, transaction);
    await measureFeedChunk(transaction, feed, 10);
    const bounds = { ageSecondsMax: -1, sizeBytesMax: 1 };
    await forgetFeedChunks(transaction, api.a.environmentId, bounds);
    await clearForgotten(transaction, feed, 10);
  });
  const { meta } = expectProblem(await waiting, 410, 'cursor_expired') as unknown as {
    meta: { oldest: string };
  };
  expect((await page(`&cursor=${meta.oldest}`)).events).toEqual([]);
}, 60_000);
