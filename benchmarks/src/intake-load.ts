/** Requests with one event, and the cores of servers under that load. */
import { cpus } from 'node:os';
import { pinToCore, type ChildServer } from './child-server.ts';
import type { Load } from './load.ts';
import type { World } from './world.ts';

/** A typical track call, 223 bytes, of 64 people. */
export const bodies: readonly string[] = Array.from({ length: 64 }, (_, person) =>
  JSON.stringify({
    userId: `user-${person}`,
    event: 'Order Placed',
    properties: { plan: 'pro', amount: 42.5, currency: 'EUR', items: ['sku-1', 'sku-2'] },
    timestamp: '2026-11-20T10:00:00.123Z',
    context: { library: { name: 'bench', version: '1.0.0' } },
  }),
);

export const trackLoad = (
  url: string,
  connections: number,
  durationSeconds: number,
  sent = bodies,
): Load => ({
  url: `${url}/v1/track`,
  method: 'POST',
  headers: {
    'Content-Type': 'application/json',
    Authorization: `Basic ${Buffer.from('demo_write_key:').toString('base64')}`,
  },
  bodies: sent,
  connections,
  durationSeconds,
});

/**
 * One core for the servers under test, which take turns; the other for Redis and the load generator,
 * which inherits it from this process. False if the machine has fewer than two cores.
 */
export async function pinApart(
  { redisServer }: World,
  servers: readonly ChildServer[],
): Promise<boolean> {
  if (cpus().length !== 2) return false;
  for (const { pids } of servers) for (const pid of pids) await pinToCore(pid, 0);
  await pinToCore(redisServer.pid, 1);
  await pinToCore(process.pid, 1);
  return true;
}
