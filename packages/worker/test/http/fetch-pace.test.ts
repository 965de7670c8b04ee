/** Files from slow servers, by the clock of the test. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createVettedConnector } from '@sluice/platform/outgoing/vetted-connection';
import { afterEach, expect, test } from 'vitest';
import { FetchFault, fetchFile } from '../../src/http/fetch-file.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function serve(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_request, response) => answer(response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** The server sends a byte after each `waitMs`; the reader takes `storeMs` to store it. */
async function readDrip(waitMs: number, storeMs: number, byteCount: number): Promise<string> {
  const begun = Promise.withResolvers<ServerResponse>();
  const url = await serve((response) => {
    response.flushHeaders();
    begun.resolve(response);
  });
  let nowMs = 0;
  const connector = createVettedConnector({ allowPrivate: true });
  const pieces = fetchFile(connector, url, { monotonicNow: () => nowMs });
  const first = pieces.next();
  const response = await begun.promise;
  response.write('a');
  let text = String((await first).value);
  while (text.length < byteCount) {
    nowMs += storeMs;
    const next = pieces.next();
    nowMs += waitMs;
    response.write('a');
    text += String((await next).value);
  }
  await pieces.return();
  return text;
}

test('a file that comes a byte each 50 s is left after 200 s, with the reason, and may be tried again', async () => {
  // The first byte comes at once.
  expect(await readDrip(50_000, 0, 4)).toBe('aaaa');
  const error: unknown = await readDrip(50_000, 0, 5).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(FetchFault);
  expect(error).toMatchObject({
    message:
      'the server sent less than 65536 bytes of the file in a minute; put it on a faster server, or upload it',
    mayPass: true,
  });
});

test('a file is not left because the worker takes long to store it', async () => {
  expect(await readDrip(1_000, 600_000, 10)).toBe('a'.repeat(10));
});
