/**
 * A feed as server-sent events: each event has its cursor as its id, so that a client that comes again goes on at its
 * last place (`Last-Event-ID`). A page is read when the reader has taken the one before, so a slow reader costs one
 * page of memory.
 */
import type { OutgoingHttpHeaders } from 'node:http';
import { once } from 'node:events';
import type { Feed, FeedEvent } from '@sluice/database/feeds/feeds';
import type { FastifyReply } from 'fastify';
import { eventText, writeCursor } from './feed-cursor.ts';

export interface FeedStreamEffects {
  /** The next events. Undefined if the next event is not kept any more, or the feed is gone; then the stream ends. */
  readonly readAfter: (after: number) => Promise<readonly FeedEvent[] | undefined>;
  /** Waits for more, up to a time. */
  readonly wait: (after: number, durationMs: number, signal: AbortSignal) => Promise<void>;
  /** While the caller may read on. */
  readonly isInForce: () => Promise<boolean>;
  readonly isStopping: () => boolean;
  readonly durationMsMax: number;
  readonly monotonicNow: () => number;
}

/** Proxies cut connections that are silent for a minute or less. A key that is revoked ends the stream within it. */
const HEARTBEAT_MS = 15_000;
const STUCK_MS_MAX = 60_000;

/** Takes the answer over, and resolves when the stream has ended. */
export async function streamFeed(
  reply: FastifyReply,
  feed: Pick<Feed, 'webhookId'>,
  begin: number,
  effects: FeedStreamEffects,
): Promise<void> {
  const { raw } = reply;
  const headers = reply.getHeaders() as OutgoingHttpHeaders;
  reply.hijack();
  const gone = new AbortController();
  raw.on('close', () => gone.abort());
  raw.on('error', () => raw.destroy());
  if (raw.destroyed) return;
  raw.writeHead(200, {
    ...headers,
    'content-type': 'text/event-stream; charset=utf-8',
    // nginx would gather events otherwise.
    'x-accel-buffering': 'no',
  });
  // At once, so that the reader knows that it is connected.
  raw.write(': reading\n\n');
  const endsAtMs = effects.monotonicNow() + effects.durationMsMax;
  let after = begin;
  while (!gone.signal.aborted && effects.monotonicNow() < endsAtMs && !effects.isStopping()) {
    // While Postgres is away the reader is sent away too, and comes again with its cursor.
    const page = await effects.readAfter(after).catch(() => undefined);
    if (page === undefined || !(await effects.isInForce().catch(() => true))) break;
    for (const event of page) {
      const cursor = writeCursor(feed.webhookId, event.sequence);
      raw.write(`id: ${cursor}\ndata: ${eventText(feed, event)}\n\n`);
      after = event.sequence;
    }
    if (page.length === 0) {
      await effects.wait(after, HEARTBEAT_MS, gone.signal);
      raw.write(': here\n\n');
    }
    if (raw.writableNeedDrain && !(await isDrained(reply, gone.signal))) raw.destroy();
  }
  raw.end();
}

/** False if the reader takes no bytes for a minute, or is gone. */
async function isDrained({ raw }: FastifyReply, gone: AbortSignal): Promise<boolean> {
  const signal = AbortSignal.any([gone, AbortSignal.timeout(STUCK_MS_MAX)]);
  return once(raw, 'drain', { signal }).then(
    () => true,
    () => false,
  );
}
