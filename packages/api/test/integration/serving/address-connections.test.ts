/** Bound on the connections of one address, and trusted proxies. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { listen } from '../../../src/server.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

const TIMEOUT = { timeout: 60_000, interval: 20 };
const COUNT_MAX = 5;

let api: ApiUnderTest;
let port: number;
let sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  await api.close();
});

async function start(trustedProxies: readonly string[] = []): Promise<void> {
  api = await startApi({ trustedProxies, addressConnectionCountMax: COUNT_MAX });
  port = await listen(api.app, '127.0.0.1', 0);
}

async function open(localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** False: the connection was cut. */
async function answers(socket: Socket): Promise<boolean> {
  const first = Promise.race([
    once(socket, 'data').then(() => true),
    once(socket, 'close').then(() => false),
  ]);
  socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
  return first;
}

// Any number of idle connections of one client took the files of the process.
test('an address gets no connection beyond a bound, and other addresses get theirs', async () => {
  await start();
  const held: Socket[] = [];
  for (let count = 0; count < COUNT_MAX; count++) held.push(await open());
  for (const socket of held) expect(await answers(socket)).toBe(true);
  expect(await answers(await open())).toBe(false);
  expect(await answers(await open('127.0.0.2'))).toBe(true);
  for (const socket of held) expect(await answers(socket)).toBe(true);
  held[0]?.destroy();
  await vi.waitFor(async () => expect(await answers(await open())).toBe(true), TIMEOUT);
});

test('a trusted proxy has a connection for each of its callers', async () => {
  await start(['127.0.0.0/8']);
  for (let count = 0; count < 3 * COUNT_MAX; count++)
    expect(await answers(await open())).toBe(true);
});
