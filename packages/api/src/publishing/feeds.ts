/**
 * `/v1/feeds`: subscriptions that a consumer reads at its own pace. The events of one are chosen as for a reporting
 * webhook. `feed-reads.ts` reads them.
 */
import type { Database } from '@sluice/database/connection/connection';
import { deleteFeed, FEED_COUNT_MAX, putFeed } from '@sluice/database/feeds/feed-changes';
import { listFeeds, type Feed } from '@sluice/database/feeds/feeds';
import { z } from 'zod';
import { changeOriginOf, environmentOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { limitReached, notFound } from '../http/problem.ts';
import { newWebhook } from '../webhooks/webhook-fields.ts';
import { writeCursor } from './feed-cursor.ts';
import { feedName, registerFeedReads, type FeedReadEffects } from './feed-reads.ts';

export interface FeedEffects extends FeedReadEffects {
  readonly database: Database;
  readonly now: () => number;
}

const params = z.object({ name: feedName });
const body = newWebhook.pick({
  events: true,
  event_names: true,
  attribute_filters: true,
  full_resolution: true,
  with_content: true,
  with_imports: true,
  with_late: true,
  with_person_attributes: true,
});

export function registerFeeds(app: ApiServer, effects: FeedEffects): void {
  const { database, now } = effects;
  registerFeedReads(app, effects);

  app.get('/v1/feeds', { schema: { hide: true } }, async (request, reply) =>
    reply.send({ feeds: (await listFeeds(database, environmentOf(request))).map(toWire) }),
  );

  app.put('/v1/feeds/:name', { schema: { hide: true, params, body } }, async (request, reply) => {
    const { event_names: names, attribute_filters: filters, ...given } = request.body;
    const put = await putFeed(
      database,
      environmentOf(request),
      request.params.name,
      {
        events: given.events,
        eventNames: names?.length ? names : null,
        attributeFilters: filters?.length ? filters : null,
        fullResolution: given.full_resolution,
        withContent: given.with_content,
        withImports: given.with_imports,
        withLate: given.with_late,
        withPersonAttributes: given.with_person_attributes,
      },
      changeOriginOf(request),
      now(),
    );
    switch (put.outcome) {
      case 'put':
        return reply.send(toWire(put.feed));
      case 'no_workspace':
        return sendProblem(request, reply, notFound('the workspace of this key was'));
      case 'too_many': {
        const problem = limitReached('the workspace', 'feeds', FEED_COUNT_MAX);
        return sendProblem(request, reply, problem);
      }
    }
  });

  app.delete('/v1/feeds/:name', { schema: { hide: true, params } }, async (request, reply) => {
    const isDeleted = await deleteFeed(
      database,
      environmentOf(request),
      request.params.name,
      changeOriginOf(request),
      now(),
    );
    return isDeleted
      ? reply.send(undefined)
      : sendProblem(request, reply, notFound('the feed was'));
  });
}

const toWire = (feed: Feed) => ({
  name: feed.name,
  events: feed.events,
  event_names: feed.eventNames,
  attribute_filters: feed.attributeFilters,
  full_resolution: feed.fullResolution,
  with_content: feed.withContent,
  with_imports: feed.withImports,
  with_late: feed.withLate,
  with_person_attributes: feed.withPersonAttributes,
  created_at: feed.createdAt.toISOString(),
  oldest: writeCursor(feed.webhookId, feed.forgottenThrough),
  latest: writeCursor(feed.webhookId, feed.lastSequence),
});
