/** A feed as server-sent events, to slow readers. */
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { expect, onTestFinished, test, vi } from 'vitest';
import { streamFeed, type FeedStreamEffects } from '../../src/publishing/feed-stream.ts';

const PAGE_SIZE_BYTES = 16 * 1_048_576;
const PIECE_MS_MAX = 60_000;

/** A feed of pages without end, on a real socket. Its time is moved by the test. */
async function openFeed(
  page: (after: number) => ReturnType<FeedStreamEffects['readAfter']>,
  given: Partial<FeedStreamEffects> = {},
) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let nowMs = 0;
  let readCount = 0;
  let pieceCount = 0;
  let isEnded = false;
  const server = createServer((_, raw) => {
    const write = raw.write.bind(raw) as (
      piece: Uint8Array,
      taken: (error?: Error) => void,
    ) => boolean;
    const counted = (piece: Uint8Array, taken: (error?: Error) => void): boolean =>
      write(piece, (error) => {
        pieceCount++;
        taken(error);
      });
    Object.assign(raw, { write: counted });
    const reply = { raw, getHeaders: () => ({}), hijack: () => undefined };
    void streamFeed(reply as unknown as FastifyReply, { webhookId: 7 }, 3, {
      readAfter: (after) => {
        readCount++;
        return page(after);
      },
      wait: (_after, _ms, signal) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
      isInForce: () => Promise.resolve(true),
      isStopping: () => false,
      durationMsMax: 3_600_000,
      pieceMsMax: PIECE_MS_MAX,
      monotonicNow: () => nowMs,
      ...given,
    }).then(() => (isEnded = true));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const socket: Socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  return {
    socket,
    readCount: () => readCount,
    pieceCount: () => pieceCount,
    isEnded: () => isEnded,
    pass(durationMs: number) {
      nowMs += durationMs;
      vi.advanceTimersByTime(durationMs);
    },
  };
}

type OpenFeed = Awaited<ReturnType<typeof openFeed>>;

const fullPage = (after: number) =>
  Promise.resolve([
    { sequence: after + 1, eventType: 'email_sent', body: `"${'x'.repeat(PAGE_SIZE_BYTES)}"` },
  ]);

/** In real time: `vi.waitFor` would move the time of the test. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(10);
}

/** Until the kernel's buffers are full. */
async function untilStuck({ readCount, pieceCount }: OpenFeed): Promise<void> {
  await until(() => readCount() > 0);
  for (let before = -1; before !== pieceCount(); await sleep(300)) before = pieceCount();
}

/** Reads until the sender has written a further piece: so the next piece begins at the present time of the test. */
async function readUntilPiece({ socket, pieceCount }: OpenFeed): Promise<void> {
  const before = pieceCount();
  await until(() => {
    if (pieceCount() > before) return true;
    socket.read(Math.min(65_536, socket.readableLength));
    return false;
  });
}

test('the first cursor is sent before the first event', async () => {
  const feed = await openFeed(() => Promise.resolve([]));
  let text = '';
  feed.socket.on('data', (bytes) => (text += bytes.toString())).resume();
  await until(() => /\r\n\r\n[^]*\nid: 7\.3\n\n/.test(text));
  expect(text).not.toContain('data:');
}, 30_000);

test('a reader that takes no bytes is cut, and no further page is read for it', async () => {
  const feed = await openFeed(fullPage);
  await untilStuck(feed);
  const before = feed.readCount();
  feed.pass(PIECE_MS_MAX - 1);
  await sleep(50);
  expect(feed.isEnded()).toBe(false);
  feed.pass(1);
  await until(feed.isEnded);
  expect(feed.readCount()).toBe(before);
}, 30_000);

test('a reader that takes a page in a multiple of the time for a piece is not cut', async () => {
  const feed = await openFeed(fullPage);
  await untilStuck(feed);
  const stuckAt = feed.readCount();
  let passedCount = 0;
  for (; feed.readCount() === stuckAt; passedCount++) {
    feed.pass(PIECE_MS_MAX - 1);
    expect(feed.isEnded()).toBe(false);
    await readUntilPiece(feed);
  }
  expect(passedCount).toBeGreaterThan(2);
  expect(feed.isEnded()).toBe(false);
}, 60_000);

test.each(['is revoked', 'is in force, of a process that stops,'])(
  'a stream to a slow reader whose key %s ends within a page',
  async (why) => {
    let isOver = false;
    const feed = await openFeed(fullPage, {
      isInForce: () => Promise.resolve(why !== 'is revoked' || !isOver),
      isStopping: () => why !== 'is revoked' && isOver,
    });
    await untilStuck(feed);
    const before = feed.pieceCount();
    isOver = true;
    feed.pass(15_000);
    feed.socket.resume();
    await until(() => feed.isEnded() || feed.pieceCount() > before + 1);
    expect(feed.isEnded()).toBe(true);
    expect(feed.pieceCount()).toBeLessThanOrEqual(before + 1);
  },
  30_000,
);
