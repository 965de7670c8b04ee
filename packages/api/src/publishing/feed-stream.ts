/**
 * A feed as server-sent events: each event has its cursor as its id, so that a client that comes again goes on at its
 * last place (`Last-Event-ID`). The first cursor is sent at once: a reader of `latest` that is cut before its first event
 * would skip events otherwise. A page is read when the reader has taken the one before, so a slow reader costs one page of
 * memory.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
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
  /** Time in which the reader takes 16 KB. Absent: a minute. */
  readonly pieceMsMax?: number;
  readonly monotonicNow: () => number;
}

/** Proxies cut connections that are silent for a minute or less. The stream checks its key as often, but not within a piece. */
const HEARTBEAT_MS = 15_000;
/** A page is written in such pieces: the progress of a reader within a larger write cannot be seen. */
const PIECE_SIZE_BYTES = 16_384;
const PIECE_MS_MAX = 60_000;

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
  const { durationMsMax, pieceMsMax = PIECE_MS_MAX } = effects;
  let checkedAtMs = effects.monotonicNow();
  const isInForce = (): Promise<boolean> => {
    checkedAtMs = effects.monotonicNow();
    return effects.isInForce().catch(() => true);
  };
  const mayGoOn = async (): Promise<boolean> => {
    if (effects.isStopping()) return false;
    return effects.monotonicNow() < checkedAtMs + HEARTBEAT_MS || isInForce();
  };
  // An event that ends in the middle is dropped by its reader, which comes again with the cursor before it.
  const write = async (text: string): Promise<boolean> => {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += PIECE_SIZE_BYTES) {
      const piece = bytes.subarray(at, at + PIECE_SIZE_BYTES);
      if ((at === 0 || (await mayGoOn())) && (await isWritten(raw, piece, pieceMsMax, gone.signal)))
        continue;
      // An end in good order could make a reader take a part of an event for the whole.
      raw.destroy();
      return false;
    }
    return !gone.signal.aborted;
  };
  const endsAtMs = effects.monotonicNow() + durationMsMax;
  let after = begin;
  // At once, so that the reader knows that it is connected. An id alone is no event, and is kept by the reader.
  let isTaken = await write(`id: ${writeCursor(feed.webhookId, begin)}\n\n`);
  while (isTaken && effects.monotonicNow() < endsAtMs && !effects.isStopping()) {
    // While Postgres is away the reader is sent away too, and comes again with its cursor.
    const page = await effects.readAfter(after).catch(() => undefined);
    if (page === undefined || !(await isInForce())) break;
    if (page.length === 0) await effects.wait(after, HEARTBEAT_MS, gone.signal);
    after = page.at(-1)?.sequence ?? after;
    isTaken = await write(page.length === 0 ? ': here\n\n' : textOf(feed, page));
  }
  raw.end();
}

const textOf = (feed: Pick<Feed, 'webhookId'>, page: readonly FeedEvent[]): string =>
  page
    .map(
      (event) =>
        `id: ${writeCursor(feed.webhookId, event.sequence)}\ndata: ${eventText(feed, event)}\n\n`,
    )
    .join('');

/** False if the reader does not take the piece in time, or is gone. */
function isWritten(
  raw: ServerResponse,
  piece: Uint8Array,
  msMax: number,
  gone: AbortSignal,
): Promise<boolean> {
  if (gone.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const end = (isTaken: boolean): void => {
      clearTimeout(overdue);
      gone.removeEventListener('abort', leave);
      resolve(isTaken);
    };
    const leave = (): void => end(false);
    const overdue = setTimeout(leave, msMax);
    gone.addEventListener('abort', leave);
    // Called once the kernel has the piece.
    raw.write(piece, (error) => end(!error));
  });
}
