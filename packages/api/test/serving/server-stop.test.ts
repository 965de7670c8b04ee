/** The end of the API beside a stall of its process. */
import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import type { ApiServer } from '../../src/http/api-server.ts';
import { ServerStop } from '../../src/serving/server-stop.ts';

/** Longer than the quiet time, after which connections without a call are cut. */
const STALL_MS = 600;
const LAST_LOOK = 30;

/** A server that knows `socketCount` connections. `atLook` runs when the timer of a look is due. */
async function startServer(socketCount: number, atLook: (look: number) => void = () => undefined) {
  const app = Fastify() as unknown as ApiServer;
  const clock = { stalledMs: 0 };
  let look = 0;
  const serverStop = new ServerStop({
    inProgressMsMax: 10_000,
    async pause(durationMs) {
      await sleep(durationMs);
      atLook(++look);
    },
    now: () => performance.now() + clock.stalledMs,
  });
  serverStop.watch(app);
  app.get('/', () => 'answered');
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  const sockets: Socket[] = [];
  for (let count = 0; count < socketCount; count++) {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    // The server knows the connection once it has answered on it.
    call(socket);
    await once(socket, 'data');
  }
  return { sockets, clock, stop: () => serverStop.stop(app) };
}

/** It is in the kernel's buffer at once, and this process does not read it before its due timers have run. */
const call = (socket: Socket | undefined) =>
  void socket?.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');

async function expectLastAnswer(socket: Socket | undefined): Promise<void> {
  const answer = await text(socket!);
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(answer).toMatch(/connection: close/i);
  expect(answer).toMatch(/answered$/);
}

test('a call that arrived during a stall is answered, and its connection is closed', async () => {
  const { sockets, stop } = await startServer(1);
  const stopped = stop();
  call(sockets[0]);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
  await expectLastAnswer(sockets[0]);
  await stopped;
});

test('a call that arrived during the last look is answered, and its connection is closed', async () => {
  const server = await startServer(1, (look) => {
    if (look === LAST_LOOK) call(server.sockets[0]);
  });
  const stopped = server.stop();
  await expectLastAnswer(server.sockets[0]);
  await stopped;
});

test('a stall beyond the time for clients that go on is followed by one look more', async () => {
  const server = await startServer(2, (look) => {
    if (look === 2) {
      server.clock.stalledMs = 6_000;
      call(server.sockets[0]);
    }
    if (look === 3) call(server.sockets[1]);
  });
  const stopped = server.stop();
  await Promise.all(server.sockets.map(expectLastAnswer));
  await stopped;
});
