/**
 * Smallest durable server with a record of its deliveries. It inserts the message in Postgres, answers, posts it signed
 * to each endpoint, and records that. Two commits an event.
 */
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import pg from 'pg';
import { Agent, request } from 'undici';

const endpoints = (process.env['ENDPOINTS'] as string).split(' ');
const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 10 });
const agent = new Agent({ connections: 64 });
await pool.query(
  'create table if not exists floor_messages (message_id bigint generated always as identity primary key, body text not null, sent_at timestamptz)',
);

async function post(endpoint: string, body: string): Promise<void> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = createHmac('sha256', 'key').update(`v0:${timestamp}:${body}`).digest('hex');
  const answer = await request(endpoint, {
    dispatcher: agent,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-svc-timestamp': timestamp,
      'x-svc-signature': signature,
    },
    body,
  });
  await answer.body.dump();
  if (answer.statusCode !== 200) throw new Error(`${endpoint} answered ${answer.statusCode}`);
}

createServer((call, answer) => {
  if (call.method === 'GET') return void answer.end('ok');
  let body = '';
  call.setEncoding('utf8');
  call.on('data', (chunk: string) => (body += chunk));
  call.on('end', () => void take(body, () => answer.end('{}')));
}).listen(Number(process.env['PORT']), '127.0.0.1');

async function take(body: string, done: () => void): Promise<void> {
  const { rows } = await pool.query<{ message_id: string }>({
    name: 'insert',
    text: 'insert into floor_messages (body) values ($1) returning message_id',
    values: [body],
  });
  done();
  await Promise.all(endpoints.map((endpoint) => post(endpoint, body)));
  await pool.query({
    name: 'sent',
    text: 'update floor_messages set sent_at = now() where message_id = $1',
    values: [rows[0]?.message_id],
  });
}
