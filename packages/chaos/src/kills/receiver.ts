/** The endpoint of the deliveries: counts how often each event is received, and when the latest was. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** As a quick endpoint has. */
const LATENCY_MS = 5;

export interface Receiver {
  readonly url: string;
  /** By event id: how often it was received whole. */
  readonly received: ReadonlyMap<string, number>;
  /** When the latest was received, in monotonic milliseconds. */
  readonly lastAtMs: () => number;
  close(): void;
}

export async function startReceiver(): Promise<Receiver> {
  const received = new Map<string, number>();
  let lastAtMs = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      const { event_id: eventId } = JSON.parse(Buffer.concat(chunks).toString()) as {
        event_id: string;
      };
      lastAtMs = performance.now();
      received.set(eventId, (received.get(eventId) ?? 0) + 1);
      void sleep(LATENCY_MS).then(() => response.writeHead(200).end());
    });
    request.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    lastAtMs: () => lastAtMs,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
