/**
 * An API that listens, with a feed for each test.
 *
 * The feed takes `customer_subscribed`.
 */
import type { AddressInfo } from 'node:net';
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { findFeed } from '@sluice/database/feeds/feeds';
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { type Tenant } from '../support/inserted-rows.ts';

export interface FeedPage<Entry> {
  readonly events: readonly Entry[];
  readonly cursor: string;
}
interface FeedEntry {
  readonly cursor: string;
  readonly event_type: string;
  readonly event: { readonly event_id: string };
}
type Page = FeedPage<FeedEntry>;

export const idsOf = ({ events }: Page) => events.map(({ event }) => event.event_id);

/** The events of a stream that have come whole: the last line may still be on its way. */
export const eventsIn = <Entry = FeedEntry>(text: string): Entry[] =>
  [...text.matchAll(/^data: (.*)\n/gm)].map(([, line = '']) => JSON.parse(line) as Entry);

/** Call it once, at the top of a file. */
export function useFeeds() {
  let api: ApiUnderTest;
  let port: number;
  let name: string;
  let count = 0;
  let eventCount = 0;
  beforeAll(async () => {
    api = await startApi();
    await api.app.listen({ port: 0, host: '127.0.0.1' });
    port = (api.app.server.address() as AddressInfo).port;
  });
  beforeEach(async () => {
    name = `feed-${++count}`;
    await world.put(name);
  });
  afterAll(() => api.close());

  const world = {
    get api() {
      return api;
    },
    /** Of the test's feed. */
    get name() {
      return name;
    },
    find: async () => (await findFeed(api.database, api.a.environmentId, name))!,

    put: (
      feed: string,
      body: object = { events: ['customer_subscribed'] },
      tenant: Tenant = api.a,
    ) => api.call('PUT', `/v1/feeds/${feed}`, { key: tenant.key, body }),

    read: (query = '', key = api.a.key) =>
      api.call('GET', `/v1/feeds/${name}?wait=0${query}`, { key }),

    page: async <Entry = FeedEntry>(query = ''): Promise<FeedPage<Entry>> => {
      const answer = await world.read(query);
      expect(answer.statusCode, answer.body).toBe(200);
      return answer.json<FeedPage<Entry>>();
    },

    /** Logs so many events. @returns their ids. */
    log: async (
      howMany: number,
      { text = '', database }: { text?: string; database?: DatabaseOrTransaction } = {},
    ): Promise<string[]> => {
      const ids = Array.from({ length: howMany }, () => `e${++eventCount}`);
      await appendDeliveries(
        database ?? api.database,
        ids.map((eventId) => ({
          environmentId: api.a.environmentId,
          eventId,
          eventType: 'customer_subscribed',
          objectType: 'customer',
          metric: 'subscribed',
          occurredAtMs: 0,
          data: { customer_id: eventId, ...(text && { text }) },
        })),
      );
      return ids;
    },

    /** Server-sent events. @param after - the `Last-Event-ID`. */
    stream: async (after = '') => {
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
      return {
        headers: answer.headers,
        /** Reads on until enough has come. @returns all that has come. */
        async until(isEnough: (all: string) => boolean): Promise<string> {
          while (!isEnough(text)) {
            const { value, done } = await reader.read();
            if (done) throw new Error(`the stream has ended after ${text.length} characters`);
            text += value;
          }
          return text;
        },
        /** Until the API ends it. */
        async end(): Promise<void> {
          while (!(await reader.read()).done);
        },
        cut: () => gone.abort(),
      };
    },
  };
  return world;
}
