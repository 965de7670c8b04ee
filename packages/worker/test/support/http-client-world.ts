/** Parts that the tests of the client share: a client and receivers that are closed when a test ends. */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { TickClock } from '@sluice/platform/testing/tick-clock';
import { afterEach, expect } from 'vitest';
import {
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
} from '../../src/http/http-client.ts';
import type { HttpOutcome } from '../../src/http/http-outcome.ts';
import { startReceiver, type ReceivedRequest, type Receiver } from './receiver.ts';

/** Of a request that does not end before it. */
export const TIMEOUT_MS = 400;
/** Of all others: a busy test machine may stand still for seconds. */
const AMPLE_TIMEOUT_MS = 20_000;
/** Time that a busy test machine may add, without its standstills. */
const LATENESS_MS_MAX = 2_000;

export const closes: (() => unknown)[] = [];
afterEach(async () => {
  for (let close = closes.pop(); close; close = closes.pop()) await close();
});

export function clientOf(options: Partial<HttpClientOptions> = {}): HttpClient {
  const client = createHttpClient({
    timeoutMs: AMPLE_TIMEOUT_MS,
    allowPrivateAddresses: true,
    ...options,
  });
  closes.push(() => client.close());
  return client;
}

export async function receiverOf(
  ...[onRequest, tls]: Parameters<typeof startReceiver>
): Promise<Receiver> {
  const receiver = await startReceiver(onRequest, tls);
  closes.push(() => receiver.close());
  return receiver;
}

export const post = (client: HttpClient, endpoint: string): Promise<HttpOutcome> =>
  client.post({
    endpoint,
    headers: { 'content-type': 'application/json' },
    body: '{"text":"Grüße"}',
  });

export const respond = (text: string) => (request: ReceivedRequest) =>
  void request.socket.write(text);

/** Sends once to a receiver that behaves so. */
export async function sendTo(
  onRequest: (request: ReceivedRequest) => void,
  options: Partial<HttpClientOptions> = {},
): Promise<HttpOutcome & { receiver: Receiver }> {
  const receiver = await receiverOf(onRequest);
  return { ...(await post(clientOf(options), receiver.url)), receiver };
}

/** That a request ends by its deadline. A standstill of this process is a tick. */
export async function expectTimeout<Sent extends HttpOutcome>(
  send: () => Promise<Sent>,
  timeoutMs = TIMEOUT_MS,
): Promise<Sent> {
  const clock = new TickClock(50);
  const startedAtMs = performance.now();
  const sent = await send().finally(() => clock.stop());
  expect(sent).toMatchObject({ outcome: 'failure', failure: 'timeout' });
  expect(sent.durationMs).toBeGreaterThanOrEqual(timeoutMs);
  expect(sent.durationMs).toBeLessThanOrEqual(Math.ceil(performance.now() - startedAtMs));
  expect(clock.nowMs).toBeLessThan(timeoutMs + LATENESS_MS_MAX);
  return sent;
}

export async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 30_000;
  while (!condition()) {
    if (performance.now() > deadlineMs) throw new Error('it did not come about');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A listener that is stopped, with its backlog full: the system completes no further connection. */
export async function startDeafListener(whenDone = closes): Promise<number> {
  const script = `require('node:net').createServer().listen({port: 0, host: '127.0.0.1', backlog: 1}, function () { console.log(this.address().port) })`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  whenDone.push(() => child.kill('SIGKILL'));
  const port = await new Promise<number>((resolve) =>
    child.stdout.once('data', (text: Buffer) => resolve(Number(text))),
  );
  child.kill('SIGSTOP');
  const fillers = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  whenDone.push(() => fillers.forEach((socket) => socket.destroy()));
  await until(() => fillers.filter((socket) => socket.readyState === 'open').length >= 2);
  return port;
}
