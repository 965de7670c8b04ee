/** Bodies that go on after the answers to their calls. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { listen } from '../../../src/server.ts';
import type { AnsweredBodiesOptions } from '../../../src/serving/answered-bodies.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

const MEBIBYTE = 1_048_576;
const TIMEOUT = { timeout: 60_000, interval: 20 };

let api: ApiUnderTest;
afterEach(() => api.close());

/** Sends a file without end as fast as it is read, with a wrong token. @returns our end and the server's. */
async function sendWithoutEnd(answeredBodies: AnsweredBodiesOptions) {
  api = await startApi({}, { answeredBodies });
  const port = await listen(api.app, '127.0.0.1', 0);
  const accepted = once(api.app.server, 'connection') as Promise<[Socket]>;
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(
    'POST /v1/imports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000000000\r\n\r\n',
  );
  const piece = Buffer.alloc(65_536, 0x78);
  const send = (): void => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on('drain', send);
  const answer = once(socket.setEncoding('latin1'), 'data');
  send();
  const [ours] = await accepted;
  expect(String(await answer)).toMatch(/^HTTP\/1\.1 401 /);
  return { socket, ours };
}

// One connection without a token took a third of a core for six hours.
test('a refused sender is read slowly, and the API answers others', async () => {
  const startedAtMs = performance.now();
  const sizeBytesASecondMax = 16 * MEBIBYTE;
  const { socket, ours } = await sendWithoutEnd({ sizeBytesASecondMax, restMsMax: 600_000 });
  await vi.waitFor(() => expect(ours.isPaused()).toBe(true), TIMEOUT);
  await once(ours, 'resume');
  const seconds = (performance.now() - startedAtMs) / 1_000;
  // The kernel's buffers are read before the answer.
  expect(ours.bytesRead).toBeLessThan(seconds * sizeBytesASecondMax + 4 * MEBIBYTE);
  expect((await api.call('GET', '/v1/workspaces')).statusCode).toBe(200);
  socket.destroy();
});

test('a refused sender of a file is cut after a while', async () => {
  const { socket, ours } = await sendWithoutEnd({
    sizeBytesASecondMax: 1_000 * MEBIBYTE,
    restMsMax: 500,
  });
  await vi.waitFor(() => expect(ours.destroyed).toBe(true), TIMEOUT);
  socket.destroy();
});
