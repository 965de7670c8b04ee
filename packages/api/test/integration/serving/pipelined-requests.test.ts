/** Requests that do not wait for earlier answers on their connection. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import type { ApiServer } from '../../../src/http/api-server.ts';
import { listen } from '../../../src/server.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

const TIMEOUT = { timeout: 60_000, interval: 20 };

let api: ApiUnderTest;
let port: number;
let openTailCount = 0;
let answeredCount = 0;
/** The requests whose answers are not over. */
const underWay = new Set<FastifyRequest>();
let isHeld = Promise.withResolvers<void>();

beforeAll(async () => {
  api = await startApi({
    tailDurationMsMax: 600_000,
    openTail: async () => {
      openTailCount++;
      return { close: () => void openTailCount-- };
    },
    checkReadiness: async () => {
      await isHeld.promise;
      return { isReady: true, checks: {} };
    },
    recordRequest: () => void answeredCount++,
    serverStop: {
      watch: (app: ApiServer) => {
        app.addHook('onRequest', (request, reply, done) => {
          underWay.add(request);
          reply.raw.once('close', () => underWay.delete(request));
          done();
        });
      },
    } as never,
  });
  port = await listen(api.app, '127.0.0.1', 0);
});
afterAll(() => api.close());
beforeEach(() => {
  isHeld = Promise.withResolvers();
  answeredCount = 0;
});

async function open(): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

const get = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${api.a.key}\r\n\r\n`;

// Each kept its state, and a live tail its place, for as long as the process lived.
test('requests that wait behind another one are forgotten when their connection is cut', async () => {
  const socket = await open();
  socket.write(get('/readyz') + get('/v1/stream').repeat(5) + get('/livez').repeat(10));
  await vi.waitFor(() => {
    expect(underWay.size).toBe(16);
    expect(openTailCount).toBe(5);
  }, TIMEOUT);
  socket.destroy();
  await vi.waitFor(() => expect([underWay.size, openTailCount]).toEqual([0, 0]), TIMEOUT);
  isHeld.resolve();
});

test('a connection with more than 32 unanswered requests is cut, and the rest of them is not begun', async () => {
  const socket = await open();
  const closed = once(socket, 'close');
  let begunCount = 0;
  const count = (): void => void begunCount++;
  api.app.server.on('request', count);
  socket.write(get('/readyz') + get('/livez').repeat(500));
  await closed;
  await vi.waitFor(() => expect(underWay.size).toBe(0), TIMEOUT);
  api.app.server.off('request', count);
  expect(begunCount).toBeGreaterThan(32);
  expect(answeredCount).toBeLessThanOrEqual(33);
  isHeld.resolve();
});

test('a client with thirty requests at a time gets an answer to each', async () => {
  const socket = await open();
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => void (text += part));
  socket.write(get('/livez').repeat(30));
  await vi.waitFor(() => expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(30), TIMEOUT);
  socket.destroy();
});
