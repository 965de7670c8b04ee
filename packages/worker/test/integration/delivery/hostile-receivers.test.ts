/**
 * The lab of hostile receivers. A delivery to any of them, over a real socket and with the real 4 s, becomes one
 * attempt row with this class and is tried again after this wait.
 *
 * All at the same time, for most of them take the whole 4 s.
 */
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { Database } from '@sluice/database/connection/connection';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  AUTHORITY_CERTIFICATE,
  EXPIRED_CERTIFICATE,
  GOOD_CERTIFICATE,
  OTHER_NAME_CERTIFICATE,
  RECEIVER_KEY,
  SELF_SIGNED_CERTIFICATE,
} from '../../support/certificates.ts';
import {
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
} from '../../../src/http/http-client.ts';
import { startDeafListener } from '../../support/http-client-world.ts';
import { answer, startReceiver, type Receiver } from '../../support/receiver.ts';
import {
  BACKOFF_MS,
  HOSTILE_ANSWERS,
  sendSteadily,
  type HostileAnswer,
} from '../support/hostile-answers.ts';
import { createLaneWorld, HOUR_MS } from '../support/lane-world.ts';

const TIMEOUT_MS = 4_000;
const BODY_BYTES_KEPT = 16 * 1024;

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

/** Delivers one event there, once, and checks its rows. */
async function expectDelivery(
  endpoint: string,
  expected: Omit<HostileAnswer, 'does' | 'onRequest'>,
  client = clientOf(),
  onStart: () => void = () => {},
): Promise<void> {
  const world = await createLaneWorld(database, { endpoint });
  await world.log(1);
  const outcome = await world.deliver({
    post: (request) =>
      sendSteadily(() => {
        onStart();
        return client.post(request);
      }, expected),
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
  test.each(HOSTILE_ANSWERS)('$does', async ({ onRequest, ...expected }) => {
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

  test('closes a kept connection at the moment of its next use does not fail the delivery', async () => {
    const receiver = await receiverOf(({ socket, ordinal }) => {
      if (ordinal === 1) socket.write(answer(200));
      else socket.resetAndDestroy();
    });
    // The requests are counted, so a standstill of this process must not make one more.
    const client = clientOf({ timeoutMs: 20_000 });
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
