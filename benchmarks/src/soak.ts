/**
 * Runs the pipeline at half its sustained rate for half an hour. It looks for growing processes, growing queues
 * and lost events. Samples hold the memory of each process and the waiting work between them. At the end each
 * event must be in Postgres once and each delivery received; a line fitted to the samples gives the growth.
 *
 * The first third of the samples is warm-up and left out. One minute (`--minutes 1`) shows loss, and only
 * gross leaks.
 */
import { parseArgs } from 'node:util';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { sql } from 'kysely';
import { memoryOf, type ChildServer } from './child-server.ts';
import { endpointOf, replaceWebhooks, unfinishedCount } from './delivery-world.ts';
import {
  bestSustained,
  PIPELINE_SHARD_COUNT,
  rampUp,
  startPipeline,
  untilReceived,
} from './pipeline.ts';
import { startReceiver, type Receiver } from './receiver.ts';
import type { Report } from './report.ts';
import { afterWarmUp, fitTrend, type Sample } from './trend.ts';
import { withWorld, type World } from './world.ts';

const PORTS = { intake: 18_130, worker: 18_131 };
const API_PORT = 18_132;
const RECEIVER_PORT = 18_133;
/** At most. */
const SAMPLES = 240;
const LINES = 12;
const RAMP_SECONDS = 5;
const WARM_UP_SHARE = 1 / 3;
const MEBIBYTE = 2 ** 20;

/** Readings by name: memory in bytes, depths in numbers. */
type Reading = Record<string, number>;

export async function benchSoak(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      minutes: { type: 'string', default: '30' },
      rate: { type: 'string' },
      from: { type: 'string', default: '500' },
    },
  });
  const seconds = Number(values.minutes) * 60;
  return withWorld('full', async (world) => {
    const receiver = await startReceiver(world, RECEIVER_PORT);
    const pipeline = await startPipeline(world, receiver, PORTS);
    const api = await world.startService('api', API_PORT, { REDIS_URL: world.redisServer.url });
    const producer = await openProducer({
      databaseUrl: world.databaseUrl,
      redisUrl: world.redisServer.url,
      prefix: 'sluice',
      shardCount: PIPELINE_SHARD_COUNT,
      logger: createLogger('bench', 'warn'),
    });
    world.onClose(() => producer.close());
    await replaceWebhooks(world.database, [endpointOf(0, RECEIVER_PORT)]);
    const rate = values.rate
      ? Number(values.rate)
      : Math.round(
          bestSustained(
            await rampUp(pipeline, {
              from: Number(values.from),
              seconds: RAMP_SECONDS,
              label: 'ramp',
            }),
          ).rate / 2,
        );
    console.log(`${rate} events/s for ${values.minutes} minutes`);

    const servers = { ...pipeline.servers, api };
    const readings: { readonly seconds: number; readonly reading: Reading }[] = [];
    const startedAtMs = performance.now();
    const intervalMs = Math.max(1_000, (seconds * 1_000) / SAMPLES);
    let isSampling = true;
    const sampling = (async () => {
      for (let taken = 0; isSampling; taken++) {
        const at = (performance.now() - startedAtMs) / 1_000;
        const reading = await read(world, producer, servers, receiver);
        readings.push({ seconds: at, reading });
        if (taken % Math.round((seconds * 1_000) / intervalMs / LINES) === 0)
          console.log(describe(at, reading));
        // In short waits, so that sampling ends soon after the load does.
        const nextAtMs = startedAtMs + (taken + 1) * intervalMs;
        while (isSampling && performance.now() < nextAtMs) await wait(100);
      }
    })();
    const load = await pipeline.source.sendAtRate(rate, seconds).finally(() => {
      isSampling = false;
    });
    await sampling;
    const settledInMs = await untilReceived(receiver, pipeline.source.count);
    await expectNothingLost(world, pipeline.source.count, await receiver.distinctCount());
    const repeated = (await receiver.count()) - pipeline.source.count;
    console.log(
      `${load.sent.toLocaleString('en')} events in ${load.elapsedSeconds.toFixed(0)} s, the last received ${settledInMs} ms later: ` +
        `each once in Postgres, each delivered; ${repeated} deliveries came more than once`,
    );

    const samplesOf = (name: string): Sample[] =>
      readings.map((one) => ({ seconds: one.seconds, value: one.reading[name] ?? NaN }));
    const processes = Object.keys(readings[0]?.reading ?? {}).filter((name) =>
      name.endsWith(' bytes'),
    );
    const ratios: Record<string, number> = {};
    const growth: Record<string, number> = {};
    for (const name of processes) {
      const { slope, first, last } = fitTrend(afterWarmUp(samplesOf(name), WARM_UP_SHARE));
      const short = name.replace(' bytes', '');
      ratios[`memory ${short}, end/start`] = last / first;
      growth[short] = (slope * 3_600) / MEBIBYTE;
      console.log(
        `memory ${short.padEnd(9)} ${(first / MEBIBYTE).toFixed(0)} → ${(last / MEBIBYTE).toFixed(0)} MB, ${growth[short].toFixed(1)} MB an hour`,
      );
    }
    const depths = ['envelopes waiting', 'deliveries waiting', 'ms p99'].map((name) => {
      const sorted = samplesOf(name)
        .map(({ value }) => value)
        .toSorted((a, b) => a - b);
      return [name, { median: sorted[sorted.length >> 1], most: sorted.at(-1) }] as const;
    });
    return {
      bench: 'soak',
      ratios,
      rates: { events: rate },
      latencyMs: { 'last delivery after the last event': settledInMs },
      details: {
        minutes: Number(values.minutes),
        events: load.sent,
        repeated_deliveries: repeated,
        memory_mb_an_hour: growth,
        ...Object.fromEntries(depths),
      },
      versions: world.versions,
    };
  });
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function read(
  { database, redisServer }: World,
  producer: Producer,
  servers: Readonly<Record<string, ChildServer>>,
  receiver: Receiver,
): Promise<Reading> {
  const reading: Reading = {};
  for (const [name, { pids }] of Object.entries(servers))
    reading[`${name} bytes`] = (await memoryOf(pids[0] as number)).residentBytes;
  reading['redis bytes'] = (await memoryOf(redisServer.pid)).residentBytes;
  // Of all its processes, without the shared buffers, whose size is a setting.
  const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity`.execute(database);
  const memory = await Promise.all(
    rows.map(({ pid }) => memoryOf(pid).catch(() => ({ anonymousBytes: 0 }))),
  );
  reading['postgres bytes'] = memory.reduce((sum, { anonymousBytes }) => sum + anonymousBytes, 0);
  const counts = await producer.commitBatchCounts();
  reading['envelopes waiting'] = counts.reduce((sum, count) => sum + count, 0);
  reading['deliveries waiting'] = await unfinishedCount(database);
  const latencies = (await receiver.takeLatenciesMs()).toSorted((a, b) => a - b);
  reading['ms p99'] = latencies[Math.floor(latencies.length * 0.99)] ?? 0;
  return reading;
}

function describe(seconds: number, reading: Reading): string {
  const parts = Object.entries(reading).map(([name, value]) =>
    name.endsWith(' bytes')
      ? `${name.replace(' bytes', '')} ${(value / MEBIBYTE).toFixed(0)} MB`
      : `${value} ${name}`,
  );
  return `${(seconds / 60).toFixed(1).padStart(5)} min  ${parts.join('  ')}`;
}

/** @throws Error with the events that are missing, or there more than once. */
async function expectNothingLost(
  { database }: World,
  sentCount: number,
  receivedCount: number,
): Promise<void> {
  const { rows } = await sql<{ messages: number; logged: number; distinct: number }>`
    select (select count(*)::int from message_deliveries where environment_id = ${DEMO.environmentId}) as messages,
           count(*)::int as logged,
           count(distinct substring(body from '"delivery_id":"([^"]+)"'))::int as distinct
      from delivery_log where environment_id = ${DEMO.environmentId}`.execute(database);
  const found = { ...rows[0], received: receivedCount };
  if (Object.values(found).some((count) => count !== sentCount))
    throw new Error(
      `of ${sentCount} sent events, Postgres and the receiver have ${JSON.stringify(found)}`,
    );
}
