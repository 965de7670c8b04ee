/** The comparator's way in: Fastify, one BullMQ job an event, added in bulk. */
import { Queue } from 'bullmq';
import Fastify from 'fastify';
import { Redis } from 'ioredis';

interface Event {
  readonly userId: string;
  readonly properties: { readonly deliveryId: string };
}

const queue = new Queue<Event>('reports', {
  connection: new Redis(process.env['REDIS_URL'] as string, { maxRetriesPerRequest: 0 }),
});
const app = Fastify();
app.get('/livez', () => 'ok');
app.post<{ Body: { batch: Event[] } }>('/v1/batch', async (request) => {
  await queue.addBulk(
    request.body.batch.map((data) => ({
      name: 'report',
      data,
      opts: { removeOnComplete: true, attempts: 5 },
    })),
  );
  return {};
});
await app.listen({ host: '127.0.0.1', port: Number(process.env['PORT']) });
