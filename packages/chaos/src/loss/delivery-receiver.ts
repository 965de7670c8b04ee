/**
 * The endpoint of the webhooks of a chaos run.
 *
 * It refuses, hangs and hangs up at times, and keeps the accepted deliveries in order. Used by `run-seed.ts`, which
 * compares them with the acknowledged calls (`delivery-checker.ts`).
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '@sluice/domain/values/seeded-random';

/** Of the requests, each. */
const REFUSED_SHARE = 0.01;
const CUT_SHARE = 0.005;
const HANGING_SHARE = 0.01;
const HANGING_MS = 300;

export interface DeliveryReceiver {
  readonly url: string;
  /** By event id: when it was accepted first, as a place among all. */
  readonly accepted: ReadonlyMap<string, number>;
  /** Faults of bodies. */
  readonly problems: readonly string[];
  close(): void;
}

interface DeliveredBody {
  readonly event_id: string;
  readonly metric: string;
}

/** @param random - decides which requests are refused: in their order, which faults change. */
export async function startDeliveryReceiver(random: Random): Promise<DeliveryReceiver> {
  const accepted = new Map<string, number>();
  const problems: string[] = [];
  const answer = async (body: string, response: ServerResponse): Promise<void> => {
    const fate = random();
    if (fate < REFUSED_SHARE) return void response.writeHead(500).end();
    if (fate < REFUSED_SHARE + CUT_SHARE) return void response.destroy();
    const { event_id: eventId, metric } = JSON.parse(body) as DeliveredBody;
    if (metric !== eventId) problems.push(`${eventId} was delivered as ${metric}`);
    if (!accepted.has(eventId)) accepted.set(eventId, accepted.size);
    if (fate > 1 - HANGING_SHARE) await sleep(HANGING_MS);
    response.writeHead(200).end();
  };
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => void (body += text));
    request.on('end', () => void answer(body, response));
    // A worker that is killed leaves a part of a request.
    request.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accepted,
    problems,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
