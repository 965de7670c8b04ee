/**
 * Everything at once on one machine: a source posts events at a fixed rate, intake acknowledges them,
 * the worker stores them and signs and posts a delivery for each, a receiver takes it. The rate goes up
 * step by step for as long as nothing piles up: at the end of a step all that was sent has arrived within
 * `SETTLED_WITHIN_MS`. Latency is from when an event was due to be sent to its arrival, so that a source
 * that is held up does not hide it.
 *
 * Events come 50 a request, as sources of many events send them; each is a report of a delivery by
 * the Pipelines API, and one webhook is subscribed to it. Source and receiver take the same two cores.
 */
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startChildServer, type ChildServer } from './child-server.ts';
import { copyRowsPerSecond, countOf, makeCopyTable, writeEventRows } from './copy-floor.ts';
import { endpointOf, replaceWebhooks } from './delivery-world.ts';
import type { Report } from './report.ts';
import { withWorld, type World } from './world.ts';

const INTAKE_PORT = 18_120;
const WORKER_PORT = 18_121;
const RECEIVER_PORT = 18_122;
const RECEIVER = `http://127.0.0.1:${RECEIVER_PORT}`;
const BATCH_SIZE = 50;
const BATCH_INTERVAL_MS = 20;
const STEP = 1.4;
const SETTLED_WITHIN_MS = 1_000;
const GIVEN_UP_AFTER_MS = 60_000;
const COPIED_ROWS = 20_000;
/** The rate that issue F asks for where COPY does 90,000 rows a second, and so of any machine. */
const WANTED_TO_COPY = 10_000 / 90_000;

interface Step {
  readonly rate: number;
  readonly isSustained: boolean;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** Cores' share of each process. */
  readonly cpu: Record<string, number>;
}

export async function benchEndToEnd(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      seconds: { type: 'string', default: '8' },
      from: { type: 'string', default: '500' },
    },
  });
  const seconds = Number(values.seconds);
  return withWorld('full', async (world) => {
    const receiver = await startChildServer({
      file: join(import.meta.dirname, 'receiver-server.ts'),
      environment: { PORT: String(RECEIVER_PORT), LATENCIES: '1' },
      url: RECEIVER,
      readyPath: '/count',
    });
    world.onClose(() => receiver.stop());
    const broker = { REDIS_URL: world.redisServer.url, SHARD_COUNT: '4' };
    const intake = await world.startService('intake', INTAKE_PORT, broker);
    const worker = await world.startService('worker', WORKER_PORT, {
      ...broker,
      WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 64 });
    world.onClose(() => agent.destroy());

    const copy = await measureCopy(world, agent);
    await replaceWebhooks(world.database, [endpointOf(0, RECEIVER_PORT)]);
    const steps: Step[] = [];
    for (let rate = Number(values.from); ; rate = Math.round(rate * STEP)) {
      const step = await runStep({ intake, worker, receiver }, agent, rate, seconds);
      steps.push(step);
      console.log(
        `${String(rate).padStart(6)} events/s  ${step.isSustained ? 'sustained' : 'piles up '}  p50 ${step.p50Ms} ms  p99 ${step.p99Ms} ms  p99.9 ${step.p999Ms} ms  ` +
          Object.entries(step.cpu)
            .map(([name, share]) => `${name} ${(share * 100).toFixed(0)} %`)
            .join(', '),
      );
      if (!step.isSustained) break;
    }
    const best = steps.findLast(({ isSustained }) => isSustained);
    if (!best) throw new Error(`${values.from} events/s pile up already; try a lower --from`);
    return {
      bench: 'e2e',
      ratios: {
        'ours/copy': best.rate / copy,
        'ours/wanted': best.rate / copy / WANTED_TO_COPY,
      },
      rates: { 'events, sustained': best.rate, 'copy rows': copy },
      latencyMs: { p50: best.p50Ms, p99: best.p99Ms, 'p99.9': best.p999Ms },
      details: { steps, batch_size: BATCH_SIZE, seconds },
      versions: world.versions,
    };
  });
}

/** What the database takes at best, by the rows of events that came the whole way. */
async function measureCopy({ database }: World, agent: Agent): Promise<number> {
  await makeCopyTable(database);
  for (let sent = 0; sent < COPIED_ROWS; sent += 500) {
    await post(
      agent,
      JSON.stringify({
        batch: Array.from({ length: 500 }, (_, n) => ({
          type: 'track',
          userId: `user-${(sent + n) % 1_000}`,
          event: 'Order Placed',
          properties: { plan: 'pro', amount: 42.5, currency: 'EUR', items: ['sku-1', 'sku-2'] },
        })),
      }),
    );
  }
  while ((await countOf(database, 'events')) < COPIED_ROWS) await sleep(20);
  const file = await writeEventRows(database);
  const rates: number[] = [];
  for (let round = 0; round < 3; round++) rates.push(await copyRowsPerSecond(database, file));
  return Math.max(...rates);
}

async function runStep(
  servers: Record<'intake' | 'worker' | 'receiver', ChildServer>,
  agent: Agent,
  rate: number,
  seconds: number,
): Promise<Step> {
  await fetch(`${RECEIVER}/latencies`);
  const cpuBefore = await cpuOf(servers);
  const receivedBefore = await receivedCount();
  const startedAtMs = Date.now();
  const posts: Promise<void>[] = [];
  let sent = 0;
  for (let elapsed = 0; elapsed < seconds * 1_000; elapsed = Date.now() - startedAtMs) {
    // What is due by now, each event with the time that it was due.
    while (sent + BATCH_SIZE <= (rate * elapsed) / 1_000) {
      const dueAtMs = Math.round(startedAtMs + (sent / rate) * 1_000);
      posts.push(post(agent, reportsOf(dueAtMs, sent)));
      sent += BATCH_SIZE;
    }
    await sleep(BATCH_INTERVAL_MS);
  }
  await Promise.all(posts);
  const elapsedSeconds = (Date.now() - startedAtMs) / 1_000;
  const cpuAfter = await cpuOf(servers);
  const sentAtMs = Date.now();
  while ((await receivedCount()) - receivedBefore < sent) {
    if (Date.now() - sentAtMs > GIVEN_UP_AFTER_MS)
      throw new Error(`${sent} events sent, ${(await receivedCount()) - receivedBefore} arrived`);
    await sleep(20);
  }
  const settledInMs = Date.now() - sentAtMs;
  const latencies = (await (await fetch(`${RECEIVER}/latencies`)).json()) as number[];
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (quantile: number) => sorted[Math.floor(sorted.length * quantile)] ?? NaN;
  return {
    rate,
    isSustained: settledInMs <= SETTLED_WITHIN_MS,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    p999Ms: at(0.999),
    cpu: Object.fromEntries(
      Object.entries(cpuAfter).map(([name, value]) => [
        name,
        (value - (cpuBefore[name] ?? NaN)) / elapsedSeconds,
      ]),
    ),
  };
}

const reportsOf = (dueAtMs: number, from: number): string =>
  JSON.stringify({
    batch: Array.from({ length: BATCH_SIZE }, (_, n) => ({
      type: 'track',
      userId: `user-${(from + n) % 1_000}`,
      event: 'Report Delivery Event',
      properties: {
        deliveryId: `${dueAtMs}-${from + n}`,
        metric: 'delivered',
        recipient: 'person@example.com',
      },
    })),
  });

/** @throws Error where the answer is not 200. */
function post(agent: Agent, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = request(
      `http://127.0.0.1:${INTAKE_PORT}/v1/batch`,
      {
        agent,
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Authorization: `Basic ${Buffer.from('demo_write_key:').toString('base64')}`,
        },
      },
      (response) => {
        response.resume();
        response.on('end', () =>
          response.statusCode === 200
            ? resolve()
            : reject(new Error(`/v1/batch answered ${response.statusCode}`)),
        );
      },
    );
    call.on('error', reject);
    call.end(body);
  });
}

async function receivedCount(): Promise<number> {
  return Number(await (await fetch(`${RECEIVER}/count`)).text());
}

async function cpuOf(servers: Record<string, ChildServer>): Promise<Record<string, number>> {
  const entries = Object.entries(servers).map(
    async ([name, server]) => [name, await server.cpuSeconds()] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}
