/**
 * The comparator's way out: a BullMQ worker, which for each job inserts a row and posts it, signed, with
 * undici. No order, no deduplication, no record of the attempt but that the job has ended.
 */
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { Agent, request } from 'undici';

const ENDPOINT = process.env['ENDPOINT'] as string;
const CONCURRENCY = 64;

interface Event {
  readonly userId: string;
  readonly properties: { readonly deliveryId: string };
}

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 10 });
const agent = new Agent({ connections: CONCURRENCY });
const worker = new Worker<Event>(
  'reports',
  async ({ data, id }) => {
    await pool.query(
      `insert into events_copied (environment_id, person_id, event_id, kind, name, data, occurred_at, received_at)
       values (1, $1, $2, 'event', 'Report Delivery Event', $3, now(), now())`,
      [Number(data.userId.slice('user-'.length)), id, data.properties],
    );
    const body = JSON.stringify({
      event_id: id,
      object_type: 'email',
      metric: 'delivered',
      data: { delivery_id: data.properties.deliveryId, identifiers: { id: data.userId } },
    });
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const answer = await request(ENDPOINT, {
      dispatcher: agent,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-svc-timestamp': timestamp,
        'x-svc-signature': createHmac('sha256', 'key')
          .update(`v0:${timestamp}:${body}`)
          .digest('hex'),
      },
      body,
    });
    await answer.body.dump();
    if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`);
  },
  {
    connection: new Redis(process.env['REDIS_URL'] as string, { maxRetriesPerRequest: null }),
    concurrency: CONCURRENCY,
  },
);
worker.on('error', (error) => console.error(error));
createServer((_, response) => response.end('ok')).listen(Number(process.env['PORT']), '127.0.0.1');
