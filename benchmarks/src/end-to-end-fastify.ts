/** Usual pipeline in our place: Fastify, BullMQ on the same Redis, undici. */
import { join } from 'node:path';
import { startChildServer } from './child-server.ts';
import { endpointOf } from './delivery-world.ts';
import { EventSource } from './event-source.ts';
import type { Pipeline } from './pipeline.ts';
import type { Receiver } from './receiver.ts';
import type { World } from './world.ts';

/** The table `events_copied` must be there. */
export async function startFastifyPipeline(
  world: World,
  receiver: Receiver,
  ports: { readonly intake: number; readonly worker: number },
): Promise<Pipeline> {
  const start = async (file: string, port: number) => {
    const server = await startChildServer({
      file: join(import.meta.dirname, file),
      environment: {
        PORT: String(port),
        REDIS_URL: world.redisServer.url,
        DATABASE_URL: world.databaseUrl,
        ENDPOINT: endpointOf(0, receiver.port),
      },
      url: `http://127.0.0.1:${port}`,
      readyPath: '/livez',
    });
    world.onClose(() => server.stop());
    return server;
  };
  const fastify = await start('end-to-end-fastify-server.ts', ports.intake);
  const bullmq = await start('end-to-end-bullmq-server.ts', ports.worker);
  const source = new EventSource(fastify.url);
  world.onClose(() => source.close());
  return { servers: { fastify, bullmq, receiver: receiver.server }, source, receiver };
}
