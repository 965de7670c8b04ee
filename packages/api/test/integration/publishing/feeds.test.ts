/** A feed is read at its reader's pace: every event at least once, in order, as long as it is kept, by its workspace alone. */
import {
  clearForgotten,
  forgetFeedChunks,
  measureFeedChunk,
} from '@sluice/database/feeds/feed-retention';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { idsOf, useFeeds } from './feed-world.ts';

const world = useFeeds();
const { put, read, page, log } = world;

const measure = (feed: Parameters<typeof measureFeedChunk>[1], countMax: number) =>
  world.api.database
    .transaction()
    .execute((transaction) => measureFeedChunk(transaction, feed, countMax));

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
  const waiting = world.api.call('GET', `/v1/feeds/${world.name}?wait=60&cursor=${cursor}`);
  const [id] = await log(1);
  expect(idsOf((await waiting).json())).toEqual([id]);
  const { cursor: end } = await page('&cursor=latest');
  const none = await world.api.call('GET', `/v1/feeds/${world.name}?wait=1&cursor=${end}`);
  expect(none.json()).toEqual({ events: [], cursor: end });
});

test('workers that measure a feed at the same time count each event once', async () => {
  await log(2);
  const feed = await world.find();
  await world.api.database.transaction().execute(async (transaction) => {
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
    world.api.database,
  );
  const [{ measured, logged }] = rows as [{ measured: string; logged: string }];
  expect(Number(measured)).toBe(Number(logged));
});

test('a cursor before forgotten events is 410 with the oldest cursor that remains', async () => {
  await log(3);
  const { cursor: early } = await page('&limit=1');
  const feed = await world.find();
  await measure(feed, 2);
  await measure(feed, 2);
  // Room for the last chunk alone, which has one event.
  const bounds = { ageSecondsMax: 3_600, sizeBytesMax: 200 };
  await forgetFeedChunks(world.api.database, world.api.a.environmentId, bounds);
  await clearForgotten(world.api.database, feed, 100);
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
  await forgetFeedChunks(world.api.database, world.api.a.environmentId, {
    ...bounds,
    ageSecondsMax: -1,
  });
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
  expect((await world.api.call('DELETE', `/v1/feeds/${world.name}`)).statusCode).toBe(200);
  expectProblem(await read(`&cursor=${cursor}`), 404, 'not_found');
  await put(world.name);
  expectProblem(await read(`&cursor=${cursor}`), 410, 'cursor_expired');
  expect((await page()).events).toEqual([]);
});

test('a feed sends no requests, and no call on webhooks finds it', async () => {
  const [id = ''] = await log(1);
  const { webhookId } = await world.find();
  expect(world.api.woken.filter((lane) => lane.webhookId === webhookId)).toEqual([]);
  const path = `/v1/reporting_webhooks/${webhookId}`;
  expectProblem(await world.api.call('GET', path), 404, 'not_found');
  expectProblem(await world.api.call('PUT', path, { body: { disabled: false } }), 404, 'not_found');
  expectProblem(await world.api.call('DELETE', path), 404, 'not_found');
  expectProblem(await world.api.call('GET', `${path}/secrets`), 404, 'not_found');
  const secret = { body: { overlap_seconds: 0 } };
  expectProblem(await world.api.call('POST', `${path}/secrets`, secret), 404, 'not_found');
  for (const body of [{ since: 0 }, { since: 0, dry_run: true }])
    expectProblem(await world.api.call('POST', `${path}/replays`, { body }), 404, 'not_found');
  for (const part of ['state', 'deliveries', 'deliveries/1'])
    expectProblem(await world.api.call('GET', `${path}/${part}`), 404, 'not_found');
  for (const action of ['probe', 'deliveries/1/resend'])
    expectProblem(await world.api.call('POST', `${path}/${action}`), 404, 'not_found');
  const sample = { body: { event_type: 'email_sent' } };
  expectProblem(await world.api.call('POST', `${path}/test`, sample), 404, 'not_found');
  const skip = { body: { sequence: 1 } };
  expectProblem(await world.api.call('POST', `${path}/skip_head`, skip), 404, 'not_found');
  const ofWebhook = await world.api.call('GET', `/v1/deliveries?webhook_id=${webhookId}`);
  expect(ofWebhook.body).not.toContain(id);
  // The trace has the event alone: a feed makes no delivery.
  const { trace } = (await world.api.call('GET', `/v1/events/${id}/trace`)).json();
  expect(trace?.deliveries ?? []).toEqual([]);
  const listed = (await world.api.call('GET', '/v1/reporting_webhooks')).json<{
    reporting_webhooks: { id: number }[];
  }>();
  expect(listed.reporting_webhooks.map((webhook) => webhook.id)).not.toContain(webhookId);
});

test('a workspace cannot read the feed of another workspace, by its name or by its cursor', async () => {
  await log(1);
  expectProblem(await read('', world.api.b.key), 404, 'not_found');
  const { cursor } = await page();
  await put(world.name, undefined, world.api.b);
  expectProblem(await read(`&cursor=${cursor}`, world.api.b.key), 410, 'cursor_expired');
  expect((await read('', world.api.b.key)).json().events).toEqual([]);
  const deleted = await world.api.call('DELETE', `/v1/feeds/${world.name}`, {
    key: world.api.b.key,
  });
  expect(deleted.statusCode).toBe(200);
  expect((await page()).events).toHaveLength(1);
});

test('a waiting reader gets 410 with the oldest cursor if all events are forgotten', async () => {
  await log(2);
  const feed = await world.find();
  const { cursor } = await page();
  const waiting = world.api.call('GET', `/v1/feeds/${world.name}?wait=60&cursor=${cursor}`);
  await world.api.database.transaction().execute(async (transaction) => {
    await log(1, { database: transaction });
    await measureFeedChunk(transaction, feed, 10);
    const bounds = { ageSecondsMax: -1, sizeBytesMax: 1 };
    await forgetFeedChunks(transaction, world.api.a.environmentId, bounds);
    await clearForgotten(transaction, feed, 10);
  });
  const { meta } = expectProblem(await waiting, 410, 'cursor_expired') as unknown as {
    meta: { oldest: string };
  };
  expect((await page(`&cursor=${meta.oldest}`)).events).toEqual([]);
}, 60_000);
