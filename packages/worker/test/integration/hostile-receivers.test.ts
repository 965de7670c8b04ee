/**
 * The lab of hostile receivers: whatever a receiver does, one delivery to it, over a real socket and
 * with the real 4 s, becomes one attempt row with this class and is tried again after this wait.
 *
 * All at the same time, for most of them take the whole 4 s.
 */
import type { Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { gzipSync } from 'node:zlib';
import type { Database } from '@sluice/database/connection';
import { createTestDatabase } from '@sluice/database/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  AUTHORITY_CERTIFICATE,
  EXPIRED_CERTIFICATE,
  GOOD_CERTIFICATE,
  OTHER_NAME_CERTIFICATE,
  RECEIVER_KEY,
  SELF_SIGNED_CERTIFICATE,
} from '../certificates.ts';
import {
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
} from '../../src/http-client.ts';
import { startDeafListener } from '../http-client-world.ts';
import { answer, startReceiver, type ReceivedRequest, type Receiver } from '../receiver.ts';
import { createLaneWorld, HOUR_MS, POLICY } from './lane-world.ts';

const TIMEOUT_MS = 4_000;
const BODY_BYTES_KEPT = 16 * 1024;
const OK_HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n';

/** What 64 MB of nothing are. */
const BOMB = gzipSync(Buffer.alloc(64 * 1_048_576));

/** Of the first wait, with the chance that the lane world has. */
const BACKOFF_MS = POLICY.backoffBaseMs * 0.75;

interface Case {
  readonly does: string;
  /** Told when the attempt was started, by the monotonic clock. */
  readonly onRequest: (request: ReceivedRequest, startedAtMs: number) => void;
  readonly failure: string | null;
  readonly status: number | null;
  readonly waitMs: number | null;
}

const CASES: readonly Case[] = [
  {
    does: 'accepts and never answers',
    onRequest: () => {},
    failure: 'timeout',
    status: null,
    waitMs: BACKOFF_MS,
  },
  {
    does: 'answers at 3.9 s',
    onRequest: ({ socket }, startedAtMs) => answerAt(socket, startedAtMs + 3_900),
    failure: null,
    status: 200,
    waitMs: null,
  },
  {
    does: 'answers at 4.1 s',
    onRequest: ({ socket }, startedAtMs) => answerAt(socket, startedAtMs + 4_100),
    failure: 'timeout',
    status: null,
    waitMs: BACKOFF_MS,
  },
  {
    does: 'drips its head, a byte a second',
    onRequest: ({ socket }) => drip(socket, answer(200)),
    failure: 'timeout',
    status: null,
    waitMs: BACKOFF_MS,
  },
  {
    does: 'drips its body, a byte a second',
    onRequest: ({ socket }) => {
      socket.write(OK_HEAD);
      drip(socket, '0123456789');
    },
    failure: 'timeout',
    status: 200,
    waitMs: BACKOFF_MS,
  },
  {
    does: 'resets before the head',
    onRequest: ({ socket }) => void socket.resetAndDestroy(),
    failure: 'connection_reset',
    status: null,
    waitMs: HOUR_MS,
  },
  {
    does: 'resets during the head',
    onRequest: ({ socket }) => resetAfter(socket, 'HTTP/1.1 200 O'),
    failure: 'connection_reset',
    status: null,
    waitMs: HOUR_MS,
  },
  {
    does: 'resets after the head',
    onRequest: ({ socket }) => resetAfter(socket, `${OK_HEAD}abc`),
    failure: 'connection_reset',
    status: 200,
    waitMs: HOUR_MS,
  },
  {
    does: 'closes its half instead of answering',
    onRequest: ({ socket }) => void socket.end(),
    failure: 'end_of_file',
    status: null,
    waitMs: HOUR_MS,
  },
  {
    does: 'closes its half in the middle of the body',
    onRequest: ({ socket }) => void socket.end(`${OK_HEAD}abc`),
    failure: 'end_of_file',
    status: 200,
    waitMs: HOUR_MS,
  },
  {
    does: 'sends garbage instead of HTTP',
    onRequest: ({ socket }) => void socket.write('\0\u0001SSH-2.0-OpenSSH_9.6\r\n\r\n'),
    failure: 'misbehaving_server',
    status: null,
    waitMs: HOUR_MS,
  },
  {
    does: 'sends a flood of 100 Continue',
    onRequest: ({ socket }) => void socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(10_000)),
    failure: 'misbehaving_server',
    status: null,
    waitMs: HOUR_MS,
  },
  {
    does: 'sends a body of 10 GB',
    onRequest: ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n');
      pour(socket);
    },
    failure: null,
    status: 200,
    waitMs: null,
  },
  {
    does: 'sends a body without end',
    onRequest: ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n');
      pour(socket);
    },
    failure: null,
    status: 200,
    waitMs: null,
  },
  {
    does: 'sends a gzip bomb',
    onRequest: ({ socket }) => {
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${BOMB.length}\r\n\r\n`,
      );
      socket.write(BOMB);
    },
    failure: null,
    status: 200,
    waitMs: null,
  },
  {
    does: 'answers 500 with a body of 10 GB',
    onRequest: ({ socket }) => {
      socket.write('HTTP/1.1 500 No\r\ncontent-length: 10000000000\r\n\r\n');
      pour(socket);
    },
    failure: 'status',
    status: 500,
    waitMs: HOUR_MS,
  },
];

function answerAt(socket: Socket, atMs: number): void {
  const timer = setTimeout(() => socket.write(answer(200)), atMs - performance.now());
  closes.push(() => clearTimeout(timer));
}

function drip(socket: Socket, text: string): void {
  let sent = 0;
  const timer = setInterval(() => socket.write(text.charAt(sent++)), 1_000);
  socket.on('close', () => clearInterval(timer));
}

function resetAfter(socket: Socket, text: string): void {
  socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), 50));
}

function pour(socket: Socket): void {
  const chunk = Buffer.alloc(65_536, 'x');
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  more();
}

/** At the end of all: the tests run beside one another. */
const closes: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closes) await close();
});

function clientOf(options: Partial<HttpClientOptions> = {}): HttpClient {
  const client = createHttpClient({
    timeoutMs: TIMEOUT_MS,
    allowPrivateAddresses: true,
    ...options,
  });
  closes.unshift(() => client.close());
  return client;
}

async function receiverOf(
  ...[onRequest, tls]: Parameters<typeof startReceiver>
): Promise<Receiver> {
  const receiver = await startReceiver(onRequest, tls);
  closes.push(() => receiver.close());
  return receiver;
}

let database: Database;
beforeAll(async () => {
  ({ database } = await createTestDatabase());
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, AUTHORITY_CERTIFICATE]);
  return () => setDefaultCACertificates(before);
});

/** Delivers one event there, once, and checks what is left of it. */
async function expectDelivery(
  endpoint: string,
  expected: Omit<Case, 'does' | 'onRequest'>,
  client = clientOf(),
  onStart: () => void = () => {},
): Promise<void> {
  const world = await createLaneWorld(database, { endpoint });
  await world.log(1);
  const outcome = await world.deliver({
    post(request) {
      onStart();
      return client.post(request);
    },
  });
  const [attempt, ...others] = await world.attempts(1);
  expect(others).toEqual([]);
  expect(attempt).toMatchObject({
    attempt: 1,
    startedAtMs: world.nowMs,
    outcome: expected.failure === null ? 'delivered' : 'retrying',
    failure: expected.failure,
    status: expected.status,
  });
  const { durationMs, responseBody } = attempt ?? { durationMs: 0, responseBody: null };
  if (expected.failure === 'timeout') expect(durationMs).toBeGreaterThanOrEqual(TIMEOUT_MS);
  expect((responseBody ?? '').length).toBeLessThanOrEqual(BODY_BYTES_KEPT);
  expect(outcome).toEqual(
    expected.waitMs === null
      ? { outcome: 'idle' }
      : { outcome: 'waiting', untilMs: world.nowMs + durationMs + expected.waitMs },
  );
}

describe.concurrent('a receiver that', () => {
  test.each(CASES)('$does', async ({ onRequest, ...expected }) => {
    let startedAtMs = 0;
    const receiver = await receiverOf((request) => onRequest(request, startedAtMs));
    await expectDelivery(receiver.url, expected, clientOf(), () => {
      startedAtMs = performance.now();
    });
  });

  test('never accepts', async () => {
    const port = await startDeafListener(closes);
    await expectDelivery(`http://127.0.0.1:${port}/`, {
      failure: 'timeout',
      status: null,
      waitMs: BACKOFF_MS,
    });
  });

  test('answers 301 to a private address: which is not asked', async () => {
    const inside = await receiverOf(({ socket }) => void socket.write(answer(200)));
    const receiver = await receiverOf(
      ({ socket }) => void socket.write(answer(301, '', `location: ${inside.url}\r\n`)),
    );
    await expectDelivery(receiver.url, { failure: 'status', status: 301, waitMs: BACKOFF_MS });
    expect(inside.requests).toEqual([]);
  });

  test('closes a kept connection at the moment of its next use: which costs nothing', async () => {
    const receiver = await receiverOf(({ socket, ordinal }) => {
      if (ordinal === 1) socket.write(answer(200));
      else socket.resetAndDestroy();
    });
    const client = clientOf();
    const expected = { failure: null, status: 200, waitMs: null };
    await expectDelivery(receiver.url, expected, client);
    await expectDelivery(receiver.url, expected, client);
    expect(receiver.requests).toHaveLength(3);
  });

  test.each<[string, string]>([
    ['is expired', EXPIRED_CERTIFICATE],
    ['is signed by itself', SELF_SIGNED_CERTIFICATE],
    ['is for another name', OTHER_NAME_CERTIFICATE],
  ])('has a certificate that %s', async (_, cert) => {
    const receiver = await receiverOf(({ socket }) => void socket.write(answer(200)), {
      key: RECEIVER_KEY,
      cert,
    });
    const client = clientOf({
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    });
    await expectDelivery(
      `https://receiver.test:${receiver.port}/`,
      { failure: 'tls_verification', status: null, waitMs: HOUR_MS },
      client,
    );
    expect(receiver.requests).toEqual([]);
  });

  test('is sound, as the others should be', async () => {
    const receiver = await receiverOf(({ socket }) => void socket.write(answer(204)), {
      key: RECEIVER_KEY,
      cert: GOOD_CERTIFICATE,
    });
    const client = clientOf({
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    });
    await expectDelivery(
      `https://receiver.test:${receiver.port}/`,
      { failure: null, status: 204, waitMs: null },
      client,
    );
  });
});
