/**
 * Memory of idle webhooks in the worker, in Redis and in Postgres. Each webhook had one delivery and no later
 * one. Each number of webhooks has a new worker.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  endpointOf,
  logDeliveries,
  release,
  replaceWebhooks,
  startDeliveryWorker,
  unfinishedCount,
  type DeliveryWorld,
} from './delivery-world.ts';
import { bytesOfOneMore, redisBytes, tableBytes } from './memory-slope.ts';
import { startReceiver } from './receiver.ts';

const WORKER_PORT = 18_140;
const RECEIVER_PORT = 18_141;
const DEADLINE_MS = 60_000;
/** Long enough for idle connections to close (4 s) and for ended jobs to be removed. */
const SETTLING_MS = 8_000;
const READINGS = 5;

interface Held {
  readonly worker: number;
  readonly Redis: number;
  readonly Postgres: number;
}

export async function measureIdleWebhooks(
  world: DeliveryWorld,
  sizes: readonly number[],
): Promise<Record<string, number>> {
  await startReceiver(world, RECEIVER_PORT);
  const held = new Map<number, Held>();
  for (const size of sizes) held.set(size, await holdIdle(world, size));
  const bytes: Record<string, number> = {};
  for (const store of ['worker', 'Redis', 'Postgres'] as const) {
    const name = `idle webhook, ${store}`;
    bytes[name] = await bytesOfOneMore(name, sizes, (size) =>
      Promise.resolve(held.get(size)?.[store] ?? NaN),
    );
  }
  return bytes;
}

async function holdIdle(world: DeliveryWorld, size: number): Promise<Held> {
  const { database, redis, producer } = world;
  await redis.flushall();
  const webhookIds = await replaceWebhooks(
    database,
    Array.from({ length: size }, (_, place) => endpointOf(place, RECEIVER_PORT)),
  );
  await logDeliveries(database, 1);
  const worker = await startDeliveryWorker(world, WORKER_PORT);
  await release(database, producer, webhookIds);
  const startedAtMs = performance.now();
  while ((await unfinishedCount(database)) > 0) {
    if (performance.now() - startedAtMs > DEADLINE_MS)
      throw new Error(`${size} webhooks: not all have had their delivery`);
    await sleep(50);
  }
  await sleep(SETTLING_MS);
  // The least of several readings: garbage comes and goes.
  let workerBytes = Infinity;
  for (let reading = 0; reading < READINGS; reading++) {
    workerBytes = Math.min(workerBytes, await worker.residentBytes());
    await sleep(500);
  }
  const held = {
    worker: workerBytes,
    Redis: await redisBytes(redis),
    Postgres: await tableBytes(database, 'public', ['webhooks', 'lanes']),
  };
  await worker.stop();
  return held;
}
