/**
 * `GET /v1/feeds/{name}`: the events of a feed after a cursor, as a page or as server-sent events. A reader that gives
 * a cursor has processed all events before it. The server does not store that position, so an event is read at least
 * once, and again by a reader with an earlier cursor.
 */
import type { Database } from '@sluice/database/connection/connection';
import { findFeed, listFeedEvents, type Feed, type FeedEvent } from '@sluice/database/feeds/feeds';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { environmentOf, isCallerInForce, NOT_IN_FORCE } from '../auth/authenticate.ts';
import type { TailPlaces } from '../events/tail-places.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  badRequest,
  commonFailures,
  missing,
  problemResponse,
  serverSentEvents,
} from '../http/fields.ts';
import { invalidRequest, notFound, PROBLEMS, type Problem } from '../http/problem.ts';
import { asksForStream } from './feed-accept.ts';
import { eventText, readCursor, writeCursor } from './feed-cursor.ts';
import { streamFeed } from './feed-stream.ts';
import { FeedWatch } from './feed-watch.ts';

export interface FeedReadEffects {
  readonly database: Database;
  /** Places of waiting readers, shared with live tails. */
  readonly tailPlaces: Pick<TailPlaces, 'take' | 'release'>;
  /** A stream ends after so long; its reader comes again. */
  readonly tailDurationMsMax: number;
  readonly monotonicNow: () => number;
}

export const feedName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, 'must be of lower-case letters, digits, - and _');

const LIMIT_MAX = 1_000;
const LIMIT_DEFAULT = 100;
const WAIT_SECONDS_MAX = 60;
/** Some HTTP clients give up after 10 s by default. */
const WAIT_SECONDS_DEFAULT = 8;
const CURSOR_LENGTH_MAX = 40;
/** Of a page's bodies; one that is larger comes alone. */
const PAGE_SIZE_BYTES_MAX = 4 * 1_024 * 1_024;
/** Of a stream: each keeps a page until its reader takes it, and the bound of unread answers does not count it. */
const STREAM_PAGE_SIZE_BYTES_MAX = 256 * 1_024;

const numberInQuery = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be an integer')
    .transform(Number)
    .pipe(z.int().min(min).max(max));

const query = z.object({
  cursor: z.string().max(CURSOR_LENGTH_MAX).optional().meta({
    description:
      'The cursor of the last event that you have dealt with. `latest`: only new events. Absent: from the oldest event.',
  }),
  limit: numberInQuery(1, LIMIT_MAX).default(LIMIT_DEFAULT),
  wait: numberInQuery(0, WAIT_SECONDS_MAX)
    .default(WAIT_SECONDS_DEFAULT)
    .meta({ description: `Seconds to wait for an event; ${WAIT_SECONDS_DEFAULT} by default.` }),
});

const feedPage = z.object({
  events: z.array(
    z.object({
      cursor: z.string(),
      event_type: z.string(),
      event: z.unknown().meta({ description: 'As a reporting webhook is sent it.' }),
    }),
  ),
  cursor: z.string().meta({ description: 'Give it with the next call.' }),
});

export function registerFeedReads(app: ApiServer, effects: FeedReadEffects): void {
  const { database, tailPlaces } = effects;
  const watch = new FeedWatch(database);
  let isStopping = false;
  // Readers who wait would hold up the stop for as long as they wait.
  app.addHook('preClose', async () => {
    isStopping = true;
    watch.stop();
  });

  /** Undefined if an event in between is not kept any more. */
  const readPage = async (
    feed: Feed,
    after: number,
    limit: number,
    sizeBytesMax = PAGE_SIZE_BYTES_MAX,
  ): Promise<readonly FeedEvent[] | undefined> => {
    const page = await listFeedEvents(database, feed, after, limit, sizeBytesMax);
    const [first] = page;
    return first && first.sequence !== after + 1 ? undefined : page;
  };

  /**
   * The same for a reader who has read or waited before: meanwhile the feed may be gone, made again, or forgotten
   * further.
   */
  const readOn = async (
    { environmentId, webhookId, name }: Feed,
    after: number,
    limit: number,
    sizeBytesMax?: number,
  ): Promise<readonly FeedEvent[] | undefined> => {
    const feed = await findFeed(database, environmentId, name);
    const isKept = feed?.webhookId === webhookId && after >= feed.forgottenThrough;
    return isKept ? readPage(feed, after, limit, sizeBytesMax) : undefined;
  };

  app.get(
    '/v1/feeds/:name',
    // HEAD would wait as long as a GET without showing an event.
    {
      exposeHeadRoute: false,
      schema: {
        tags: ['feeds'],
        summary: 'Read a feed',
        description:
          'The events after a cursor, each at least once. With `accept: text/event-stream` they come as server-sent events.',
        params: z.object({ name: feedName }),
        querystring: query,
        response: {
          200: {
            description: 'Events.',
            content: {
              'application/json': { schema: feedPage },
              ...serverSentEvents,
            },
          },
          ...badRequest,
          ...missing,
          410: problemResponse(PROBLEMS.cursor_expired.meaning),
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const { limit, wait } = request.query;
      const isStream = asksForStream(request.headers.accept);
      const given = (isStream && lastEventIdOf(request)) || request.query.cursor;
      const feed = await findFeed(database, environmentId, request.params.name);
      if (!feed) return sendProblem(request, reply, notFound('the feed was'));
      const cursor = readCursor(given, feed);
      if (cursor.outcome !== 'read')
        return sendProblem(request, reply, whyNot(cursor.outcome, feed));
      const { after } = cursor;
      const place = { environmentId, webhookId: feed.webhookId };
      if (!isStream) {
        const page = await readPage(feed, after, limit);
        if (!page) return sendProblem(request, reply, whyNot('expired', feed));
        if (page.length > 0 || wait === 0) return sendPage(reply, feed, after, page);
      }
      if (!(await tailPlaces.take(environmentId))) return sendProblem(request, reply, FULL);
      try {
        if (isStream) {
          await streamFeed(reply, feed, after, {
            readAfter: (sequence) => readOn(feed, sequence, limit, STREAM_PAGE_SIZE_BYTES_MAX),
            wait: (sequence, durationMs, signal) =>
              watch.wait({ ...place, after: sequence }, durationMs, signal),
            isInForce: () => isCallerInForce(request, database),
            isStopping: () => isStopping,
            durationMsMax: effects.tailDurationMsMax,
            monotonicNow: effects.monotonicNow,
          });
          return reply;
        }
        const gone = new AbortController();
        reply.raw.on('close', () => gone.abort());
        if (reply.raw.destroyed) gone.abort();
        await watch.wait({ ...place, after }, wait * 1_000, gone.signal);
      } finally {
        tailPlaces.release(environmentId);
      }
      // A minute may have passed.
      if (!(await isCallerInForce(request, database)))
        return sendProblem(request, reply, NOT_IN_FORCE);
      const page = await readOn(feed, after, limit);
      if (page) return sendPage(reply, feed, after, page);
      const left = await findFeed(database, environmentId, feed.name);
      const why = left ? whyNot('expired', left) : notFound('the feed was');
      return sendProblem(request, reply, why);
    },
  );
}

function sendPage(
  reply: FastifyReply,
  feed: Feed,
  after: number,
  page: readonly FeedEvent[],
): FastifyReply {
  const events = page.map((event) => eventText(feed, event));
  const cursor = writeCursor(feed.webhookId, page.at(-1)?.sequence ?? after);
  return reply
    .type('application/json; charset=utf-8')
    .serializer(String)
    .send(`{"events":[${events.join(',')}],"cursor":"${cursor}"}`);
}

/** Browsers and their libraries send it when they come again. */
function lastEventIdOf({ headers }: FastifyRequest): string | undefined {
  const given = headers['last-event-id'];
  return typeof given === 'string' && given !== '' ? given : undefined;
}

const FULL: Problem = {
  code: 'unavailable',
  message:
    'the limit of waiting readers of this installation or workspace is reached; try again later',
};

function whyNot(outcome: 'malformed' | 'ahead' | 'expired', feed: Feed): Problem {
  const oldest = writeCursor(feed.webhookId, feed.forgottenThrough);
  if (outcome === 'expired')
    return {
      code: 'cursor_expired',
      message: `the events after the cursor are deleted; continue with the cursor ${oldest}`,
      meta: { oldest },
    };
  const message =
    outcome === 'ahead'
      ? 'cursor must not be later than the last event of the feed'
      : 'cursor must be the cursor of an answer of this feed, or latest';
  const source = { parameter: 'cursor' };
  return invalidRequest([{ field: 'cursor', reason: 'invalid', message, source }]);
}
