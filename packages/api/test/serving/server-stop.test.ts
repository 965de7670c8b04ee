/** The end of the API beside a stall of its process. */
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import type { ApiServer } from '../../src/http/api-server.ts';
import { ServerStop } from '../../src/serving/server-stop.ts';

/** Longer than the quiet time, after which connections without a call are cut. */
const STALL_MS = 600;

test('a call that arrived during a stall is answered, and its connection is closed', async () => {
  const app = Fastify() as unknown as ApiServer;
  const serverStop = new ServerStop({ inProgressMsMax: 10_000 });
  serverStop.watch(app);
  app.get('/', () => 'answered');
  await app.listen({ port: 0, host: '127.0.0.1' });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  // The server knows the connection once it has answered on it.
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(socket, 'data');

  const stopped = serverStop.stop(app);
  // It is in the kernel's buffer, and this process does not read it before its timers are due.
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(answer).toMatch(/connection: close/i);
  expect(answer).toMatch(/answered$/);
  await stopped;
});
