/** Parts that tests of traces share: a tracing sender, an endpoint, calls of the fleet. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { expect } from 'vitest';
import type { Fleet } from '../fleet-under-test.ts';

/** Processes start slowly on a machine that is shared. */
export const SLOW = { timeout: 300_000 };

/** Somebody who traces, outside: a trace of its own each time. */
export function newSender() {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` };
}

export interface Endpoint {
  readonly requests: IncomingHttpHeaders[];
  readonly url: string;
  close(): void;
}

export async function startEndpoint(): Promise<Endpoint> {
  const requests: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    requests.push(request.headers);
    request.resume().on('end', () => response.end());
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { requests, url: `http://127.0.0.1:${port}/hook`, close: () => void server.close() };
}

/** A call of the app API or, with a token, of an account's. */
export const callApi = (
  fleet: Fleet,
  path: string,
  body: object | FormData,
  headers: object = {},
) =>
  fetch(`${fleet.api.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${DEMO.appKey}`,
      ...(!(body instanceof FormData) && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body instanceof FormData ? body : JSON.stringify(body),
  });

/** Has people's leaving reported to the endpoint. @returns the webhook's id. */
export async function addWebhook(fleet: Fleet, endpoint: Endpoint): Promise<number> {
  const body = { name: 'traced', endpoint: endpoint.url, events: ['customer_unsubscribed'] };
  const made = await callApi(fleet, '/v1/reporting_webhooks', body);
  expect(made.status).toBe(200);
  return ((await made.json()) as { id: number }).id;
}

export const WRITE_KEY = `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`;
export const leaving = (userId: string) => ({
  userId,
  traits: { email: `${userId}@example.com`, unsubscribed: true },
});

export async function identify(
  fleet: Fleet,
  userId: string,
  headers: Record<string, string> = {},
): Promise<number> {
  const { status } = await fetch(`${fleet.intake.url}/v1/identify`, {
    method: 'POST',
    headers: { authorization: WRITE_KEY, 'x-strict-mode': '1', ...headers },
    body: JSON.stringify(leaving(userId)),
  });
  return status;
}
