/** Connections over which no byte comes or goes do not stay. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { listen } from '../../../src/server.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';
import { countImports } from '../support/import-forms.ts';

let api: ApiUnderTest;
let port: number;
beforeAll(async () => {
  api = await startApi({}, { silenceTimeoutMs: 1_000 });
  port = await listen(api.app, '127.0.0.1', 0);
});
afterAll(() => api.close());

async function begin(head: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(`${head}\r\nHost: x\r\nAuthorization: Bearer ${api.a.key}\r\n`);
  return socket;
}

const field = (name: string, value: string): string =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const FIELDS = field('name', 'a') + field('type', 'event') + field('identifier', 'id');
const FILE =
  '--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n_svc_name\r\n';

test.each([
  ['its head', ''],
  ['its fields', FIELDS],
  ['the first bytes of its file', FIELDS + FILE],
])(
  'a sender of a file that stops after %s gets 408, and leaves no import behind',
  async (_, form) => {
    const socket = await begin('POST /v1/imports HTTP/1.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => void (text += part));
    socket.write(
      `Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n${form}`,
    );
    await once(socket, 'close');
    expect(text).toMatch(/^HTTP\/1\.1 408 /);
    await vi.waitFor(async () => expect(await countImports(api.database)).toBe(0), 20_000);
  },
);

const connectionCount = (): Promise<number> =>
  new Promise((resolve, reject) =>
    api.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );

// Its answers waited in memory for as long as it liked.
test('a reader that does not take its answers is cut', async () => {
  const accepted = once(api.app.server, 'connection');
  const socket = await begin('GET /openapi.json HTTP/1.1');
  socket.pause();
  const next = `\r\nGET /openapi.json HTTP/1.1\r\nHost: x\r\n`;
  // Far more than the buffers of two sockets.
  socket.write(`${next.repeat(200)}\r\n`);
  await accepted;
  await vi.waitFor(async () => expect(await connectionCount()).toBe(0), 60_000);
  socket.destroy();
});

test('a call that waits for us longer is answered', async () => {
  // Over no socket: the API ends a kept one when it has been silent for a second, perhaps beside the next call.
  const answer = await api.call('PUT', '/v1/feeds/quiet', { body: { events: ['event'] } });
  expect(answer.statusCode).toBe(200);
  // Its wait for an event is three times as long as a client may be silent.
  const read = await fetch(`http://127.0.0.1:${port}/v1/feeds/quiet?wait=3`, {
    headers: { authorization: `Bearer ${api.a.key}` },
  });
  expect(await read.json()).toMatchObject({ events: [] });
});
