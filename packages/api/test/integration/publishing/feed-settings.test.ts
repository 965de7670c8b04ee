/** Settings of a feed, as a PUT changes them. */
import { expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { idsOf, useFeeds } from './feed-world.ts';

const world = useFeeds();
const { put, page, log } = world;

test('a feed gets only its chosen event types, and a change applies to later events', async () => {
  await put(world.name, { events: ['email_sent'] });
  await log(1);
  expect((await page()).events).toEqual([]);
  await put(world.name);
  expect(await log(1)).toEqual(idsOf(await page()));
  const listed = (await world.api.call('GET', '/v1/feeds')).json<{
    feeds: { name: string; latest: string }[];
  }>();
  expect(listed.feeds.find((feed) => feed.name === world.name)).toMatchObject({
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
  expect((await put(world.name, all)).json()).toMatchObject(all);
  expect((await put(world.name, {})).json()).toMatchObject(all);
  expect((await put(world.name, { events: ['event'] })).json()).toMatchObject({
    ...all,
    events: ['event'],
  });
  const back = { event_names: null, attribute_filters: [], with_late: false };
  expect((await put(world.name, back)).json()).toMatchObject({
    ...all,
    events: ['event'],
    ...back,
    attribute_filters: null,
  });
  const { errors } = expectProblem(await put(`${world.name}-new`, {}), 400, 'invalid_request');
  expect(errors.map(({ field }) => field)).toEqual(['events']);
  expectProblem(await world.api.call('GET', `/v1/feeds/${world.name}-new`), 404, 'not_found');
});
