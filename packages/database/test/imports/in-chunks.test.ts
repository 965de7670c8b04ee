/** Pieces of a file on their way to Postgres. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { inChunks } from '../../src/imports/in-chunks.ts';

const MEBIBYTE = 1_048_576;
const WAIT_MS = 2_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

// It ended the process, as an unheard failure beside the chunk before it.
test('a source that fails while a chunk is stored reports it after that, and the process goes on', async () => {
  const failed = Promise.withResolvers<void>();
  async function* pieces() {
    yield Buffer.alloc(MEBIBYTE);
    failed.resolve();
    throw new Error('the server cut the connection');
  }
  const chunks = inChunks(pieces(), WAIT_MS);
  expect((await chunks.next()).value?.length).toBe(MEBIBYTE);
  await failed.promise;
  // Node reports unheard failures after all promises.
  await new Promise((resolve) => setImmediate(resolve));
  await expect(chunks.next()).rejects.toThrow('the server cut the connection');
});

test('the bytes of a slow source come after the wait, and an empty chunk stands for a silent time', async () => {
  const source = new Promise<never>(() => undefined);
  async function* pieces() {
    yield Buffer.from('a');
    await source;
  }
  const chunks = inChunks(pieces(), WAIT_MS);
  const first = chunks.next();
  await vi.advanceTimersByTimeAsync(WAIT_MS);
  expect((await first).value?.toString()).toBe('a');
  const second = chunks.next();
  await vi.advanceTimersByTimeAsync(WAIT_MS);
  expect((await second).value?.length).toBe(0);
  await chunks.return();
});

test('chunks of a fast source are of a megabyte, and hold all of its bytes in order', async () => {
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => `${index}\n`).join(''));
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += 70_000) yield bytes.subarray(at, at + 70_000);
  }
  const chunks: Buffer[] = [];
  for await (const chunk of inChunks(pieces(), WAIT_MS)) chunks.push(chunk);
  expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
  for (const chunk of chunks.slice(0, -1)) expect(chunk.length).toBeGreaterThanOrEqual(MEBIBYTE);
});
