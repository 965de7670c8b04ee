/** Usual server in our place: Fastify, one BullMQ job a request, on the same Redis. */
import { Queue } from 'bullmq';
import Fastify from 'fastify';
import { Redis } from 'ioredis';

const queue = new Queue('events', {
  connection: new Redis(process.env['REDIS_URL'] as string, { maxRetriesPerRequest: 0 }),
});
const app = Fastify();
app.post('/v1/track', async (request) => {
  await queue.add('event', request.body, { removeOnComplete: true });
  return {};
});
// Several processes may share the port, as they do with uWebSockets.js.
await app.listen({
  host: '127.0.0.1',
  port: Number(process.env['PORT']),
  reusePort: true,
} as never);
