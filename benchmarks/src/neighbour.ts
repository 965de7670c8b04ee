/**
 * Cost of a workspace at full speed for another one. It measures the time from the due time of a call of the other until its
 * event is in Postgres, beside that workspace against without, in turn within a round.
 *
 * The neighbour posts batches in a closed loop, so it uses all that intake gives it, or at a rate (`--rate`, events a
 * second). Its queued calls are applied before the next round begins.
 */
import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { Redis } from 'ioredis';
import { sql } from 'kysely';
import type { Bars } from './bars.ts';
import { median, type Report } from './report.ts';
import { withWorld } from './world.ts';

const PORTS = { intake: 18_130, worker: 18_131 };
const CALLS_PER_SECOND = 50;
const LOOK_INTERVAL_MS = 5;
const APPLIED_WITHIN_MS = 120_000;
const BATCH_SIZE = 50;
const REFUSED_PAUSE_MS = 100;

export const NEIGHBOUR_BARS: Bars = { 'p99 beside/without': { atMost: 5 } };

interface Measured {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export async function benchNeighbour(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '6' },
      rate: { type: 'string', default: '0' },
      connections: { type: 'string', default: '32' },
    },
  });
  const seconds = Number(values.seconds);
  const rate = Number(values.rate);
  const connectionCount = Number(values.connections);
  return withWorld('full', async (world) => {
    const broker = { REDIS_URL: world.redisServer.url, SHARD_COUNT: '4' };
    const intake = await world.startService('intake', PORTS.intake, {
      ...broker,
      INTAKE_SPILL_DIRECTORY: join(world.directory, 'spill'),
    });
    await world.startService('worker', PORTS.worker, broker);
    const measure = (onSent = (): void => undefined) =>
      measureCalls(world.database, intake.url, seconds, onSent);
    await measure();
    const rounds: { without: Measured; beside: Measured; calls: number; refused: number }[] = [];
    for (let round = 0; round < Number(values.rounds); round++) {
      const without = await measure();
      const neighbour = startNeighbour(intake.url, rate, connectionCount);
      await sleep(1_000);
      // It ends with the last measured call, not with the last applied one, else it would add to the wait.
      const beside = await measure(() => neighbour.stop());
      const { acceptedCount, refusedCount } = await neighbour.ended;
      const startedAtMs = performance.now();
      await untilApplied(world.redis);
      const drainedMs = performance.now() - startedAtMs;
      rounds.push({ without, beside, calls: acceptedCount, refused: refusedCount });
      console.log(
        `p99 ${beside.p99Ms.toFixed(1)} ms, p50 ${beside.p50Ms.toFixed(1)} ms; without ${without.p99Ms.toFixed(1)} ms, ${without.p50Ms.toFixed(1)} ms; neighbour ${Math.round((acceptedCount * BATCH_SIZE) / (seconds + 1))} events/s, ${refusedCount} batches refused, rest applied in ${(drainedMs / 1_000).toFixed(1)} s`,
      );
    }
    const middle = (at: (round: (typeof rounds)[number]) => number) => median(rounds.map(at));
    return {
      bench: 'neighbour',
      ratios: {
        'p99 beside/without': middle(({ without, beside }) => beside.p99Ms / without.p99Ms),
      },
      rates: {
        "the neighbour's events": middle(({ calls }) => (calls * BATCH_SIZE) / (seconds + 1)),
        'calls of the other': CALLS_PER_SECOND,
      },
      latencyMs: {
        'p50 beside': middle(({ beside }) => beside.p50Ms),
        'p99 beside': middle(({ beside }) => beside.p99Ms),
        'p50 without': middle(({ without }) => without.p50Ms),
        'p99 without': middle(({ without }) => without.p99Ms),
      },
      details: { rounds: Number(values.rounds), seconds, rate, connections: connectionCount },
      versions: world.versions,
    };
  });
}

let lastNumber = 0;

/** The workspace beside the other: single calls at a fixed rate, each until it is applied. */
async function measureCalls(
  database: Database,
  url: string,
  seconds: number,
  onSent: () => void,
): Promise<Measured> {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  const dueAt = new Map<number, number>();
  const latenciesMs: number[] = [];
  const count = seconds * CALLS_PER_SECOND;
  const posts: Promise<void>[] = [];
  const startedAt = new Date(Date.now() - 1_000);
  const looking = look();
  const startedAtMs = performance.now();
  for (let call = 0; call < count; call++) {
    const dueAtMs = startedAtMs + (call * 1_000) / CALLS_PER_SECOND;
    const earlyMs = dueAtMs - performance.now();
    if (earlyMs > 0) await sleep(earlyMs);
    const number = ++lastNumber;
    dueAt.set(number, dueAtMs);
    const body = { userId: `person-${number % 32}`, event: 'Order Placed', properties: { number } };
    posts.push(
      post(agent, `${url}/v1/track`, DEMO.paidWriteKey, JSON.stringify(body)).then((status) => {
        if (status !== 200) throw new Error(`a call of the other was answered ${status}`);
      }),
    );
  }
  try {
    await Promise.all(posts);
    onSent();
    await looking;
  } finally {
    agent.destroy();
  }
  const sorted = latenciesMs.toSorted((one, other) => one - other);
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? NaN;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };

  async function look(): Promise<void> {
    const deadlineMs = performance.now() + seconds * 1_000 + APPLIED_WITHIN_MS;
    while (latenciesMs.length < count) {
      if (performance.now() > deadlineMs) throw new Error('calls of the other are not applied');
      const { rows } = await sql<{ number: number }>`
        select (data ->> 'number')::int as number from events
         where environment_id = ${DEMO.paidEnvironmentId} and received_at > ${startedAt}
           and data ? 'number'`.execute(database);
      const seenAtMs = performance.now();
      for (const { number } of rows) {
        const dueAtMs = dueAt.get(number);
        if (dueAtMs === undefined) continue;
        dueAt.delete(number);
        latenciesMs.push(seenAtMs - dueAtMs);
      }
      await sleep(LOOK_INTERVAL_MS);
    }
  }
}

/**
 * One workspace's batches, from so many connections, each as soon as the one before it is answered and the rate allows. With
 * 0 there is no batch.
 */
function startNeighbour(
  url: string,
  rate: number,
  connectionCount: number,
): {
  stop(): void;
  readonly ended: Promise<{ acceptedCount: number; refusedCount: number }>;
} {
  const agent = new Agent({ keepAlive: true, maxSockets: connectionCount });
  let isStopped = false;
  let acceptedCount = 0;
  let refusedCount = 0;
  const bodies = Array.from({ length: 64 }, (_, turn) =>
    JSON.stringify({
      batch: Array.from({ length: BATCH_SIZE }, (_unused, place) => ({
        type: 'track',
        userId: `user-${(turn * BATCH_SIZE + place) % 1_000}`,
        event: 'Order Placed',
        properties: { plan: 'pro', amount: 42.5, currency: 'EUR', items: ['sku-1', 'sku-2'] },
      })),
    }),
  );
  let turn = 0;
  const startedAtMs = performance.now();
  const connections = Array.from({ length: connectionCount }, async () => {
    while (!isStopped) {
      const dueAtMs = rate === 0 ? 0 : startedAtMs + (turn * BATCH_SIZE * 1_000) / rate;
      if (dueAtMs > performance.now()) {
        await sleep(Math.min(50, dueAtMs - performance.now()));
        continue;
      }
      const body = bodies[turn++ % bodies.length] as string;
      if ((await post(agent, `${url}/v1/batch`, DEMO.writeKey, body)) === 200) acceptedCount++;
      else {
        refusedCount++;
        await sleep(REFUSED_PAUSE_MS);
      }
    }
  });
  return {
    stop: () => void (isStopped = true),
    ended: Promise.all(connections)
      .finally(() => agent.destroy())
      .then(() => ({ acceptedCount, refusedCount })),
  };
}

/** @returns the status of the answer. */
async function post(agent: Agent, url: string, key: string, body: string): Promise<number> {
  const authorization = `Basic ${Buffer.from(`${key}:`).toString('base64')}`;
  const call = request(url, {
    agent,
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: authorization },
  });
  call.end(body);
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  return response.statusCode ?? 0;
}

/** The queues of events are empty. */
async function untilApplied(redis: Redis): Promise<void> {
  const keys = await redis.keys('*:events-*');
  const lists = keys.filter((key) => /:(wait|active)$/.test(key));
  for (;;) {
    const counts = await Promise.all(lists.map((list) => redis.llen(list)));
    if (counts.every((count) => count === 0)) return;
    await sleep(LOOK_INTERVAL_MS);
  }
}
