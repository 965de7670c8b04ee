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
import { atLimit, badBody, badRequest, commonFailures, missing } from '../http/fields.ts';
import { invalidRequest, limitReached, notFound } from '../http/problem.ts';
import { incomingOf } from '../webhooks/incoming-options.ts';
import { webhook, webhookChanges } from '../webhooks/webhook-fields.ts';
import { showFilters } from '../webhooks/webhook-options.ts';
import { writeCursor } from './feed-cursor.ts';
import { feedName, registerFeedReads, type FeedReadEffects } from './feed-reads.ts';

export interface FeedEffects extends FeedReadEffects {
  readonly database: Database;
  readonly now: () => number;
}

const params = z.object({ name: feedName });
const TAKEN = {
  events: true,
  event_names: true,
  attribute_filters: true,
  full_resolution: true,
  with_content: true,
  with_imports: true,
  with_late: true,
  with_person_attributes: true,
} as const;
const body = webhookChanges.pick(TAKEN).meta({
  id: 'NewFeed',
  description:
    'The events that the feed takes, as for a reporting webhook. Absent fields stay; a new feed needs `events`.',
  requestExamples: [{ events: ['event'], event_names: ['order_placed'] }],
});
const feedShape = z
  .object({
    name: z.string(),
    ...webhook.pick(TAKEN).shape,
    created_at: z.string(),
    oldest: z.string().meta({ description: 'The earliest cursor that can be read from.' }),
    latest: z.string().meta({ description: 'The cursor of the last event.' }),
  })
  .meta({ id: 'Feed', description: 'A subscription that a consumer reads at its own pace.' });

const tags = ['feeds'];

export function registerFeeds(app: ApiServer, effects: FeedEffects): void {
  const { database, now } = effects;
  registerFeedReads(app, effects);

  app.get(
    '/v1/feeds',
    {
      schema: {
        tags,
        summary: 'List the feeds',
        response: { 200: z.object({ feeds: z.array(feedShape) }), ...commonFailures },
      },
    },
    async (request, reply) =>
      reply.send({ feeds: (await listFeeds(database, environmentOf(request))).map(toWire) }),
  );

  const putSchema = {
    tags,
    summary: 'Make or change a feed',
    description: `At most ${FEED_COUNT_MAX} a workspace. Events are kept for seven days or 10 GB.`,
    params,
    body,
    response: {
      200: feedShape,
      ...badRequest,
      ...missing,
      ...atLimit,
      ...badBody,
      ...commonFailures,
    },
  };
  app.put('/v1/feeds/:name', { schema: putSchema }, async (request, reply) => {
    const { events, attribute_filters: filters, ...given } = request.body;
    const { full_resolution: fullResolution, with_content: withContent } = given;
    const put = await putFeed(
      database,
      environmentOf(request),
      request.params.name,
      {
        ...(events !== undefined && { events }),
        ...(filters !== undefined && { attributeFilters: filters?.length ? filters : null }),
        ...(fullResolution !== undefined && { fullResolution }),
        ...(withContent !== undefined && { withContent }),
        ...incomingOf(given),
      },
      changeOriginOf(request),
      now(),
    );
    switch (put.outcome) {
      case 'put':
        return reply.send(toWire(put.feed));
      case 'no_workspace':
        return sendProblem(request, reply, notFound('the workspace of this key was'));
      case 'no_events':
        return sendProblem(request, reply, NO_EVENTS);
      case 'too_many': {
        const problem = limitReached('the workspace', 'feeds', FEED_COUNT_MAX);
        return sendProblem(request, reply, problem);
      }
    }
  });

  const deleteSchema = {
    tags,
    summary: 'Delete a feed',
    description: 'With its events.',
    params,
    response: { 200: z.undefined(), ...badRequest, ...missing, ...commonFailures },
  };
  app.delete('/v1/feeds/:name', { schema: deleteSchema }, async (request, reply) => {
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

const NO_EVENTS = invalidRequest([
  {
    field: 'events',
    reason: 'required',
    message: 'events is required for a new feed',
    source: { pointer: '/events' },
  },
]);

const toWire = (feed: Feed): z.infer<typeof feedShape> => ({
  name: feed.name,
  events: [...feed.events],
  event_names: feed.eventNames && [...feed.eventNames],
  attribute_filters: showFilters(feed.attributeFilters),
  full_resolution: feed.fullResolution,
  with_content: feed.withContent,
  with_imports: feed.withImports,
  with_late: feed.withLate,
  with_person_attributes: feed.withPersonAttributes,
  created_at: feed.createdAt.toISOString(),
  oldest: writeCursor(feed.webhookId, feed.forgottenThrough),
  latest: writeCursor(feed.webhookId, feed.lastSequence),
});
