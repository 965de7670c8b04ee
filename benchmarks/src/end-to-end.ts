/**
 * Whole path on one machine. A source posts events at a fixed rate, and intake acknowledges them. The worker stores them and
 * signs and posts a delivery for each, and a receiver takes it. The rate goes up step by step until events pile up
 * (`pipeline.ts`). Latency runs from the due time of an event to its arrival, so a late source does not hide it.
 *
 * Then the same with a usual pipeline in our place. Fastify adds a BullMQ job an event on the same Redis, and a BullMQ
 * worker inserts a row and posts it, signed, with undici. It has no order, no deduplication and no record of attempts. Ours
 * waits meanwhile.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { copyRowsPerSecond, countOf, makeCopyTable, writeEventRows } from './copy-floor.ts';
import { endpointOf, replaceWebhooks } from './delivery-world.ts';
import { BATCH_SIZE, type EventSource } from './event-source.ts';
import { startFastifyPipeline } from './end-to-end-fastify.ts';
import { bestSustained, rampUp, startPipeline } from './pipeline.ts';
import { startReceiver } from './receiver.ts';
import { median, type Report } from './report.ts';
import { withWorld, type World } from './world.ts';

const PORTS = { intake: 18_120, worker: 18_121 };
const FASTIFY_PORTS = { intake: 18_123, worker: 18_124 };
const RECEIVER_PORT = 18_122;
/**
 * As in `process`. Of 20,000 rows, which take 0.12 s, COPY has up to a tenth more a second. That is a burst, and ours is
 * measured over a longer time.
 */
const COPIED_ROWS = 100_000;
/** Before the ramp, and after it. */
const COPY_ROUNDS = 3;
/** The rate that issue F requires if COPY does 90,000 rows a second, and the same share on any machine. */
const WANTED_TO_COPY = 10_000 / 90_000;

export async function benchEndToEnd(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      seconds: { type: 'string', default: '8' },
      from: { type: 'string', default: '500' },
    },
  });
  const load = { seconds: Number(values.seconds), from: Number(values.from) };
  return withWorld('full', async (world) => {
    const receiver = await startReceiver(world, RECEIVER_PORT);
    const pipeline = await startPipeline(world, receiver, PORTS);
    const copyRounds = await prepareCopy(world, pipeline.source);
    const copyRates = await copyRounds();
    await replaceWebhooks(world.database, [endpointOf(0, RECEIVER_PORT)]);
    const steps = await rampUp(pipeline, { ...load, label: 'ours' });
    // On both sides of a ramp of a minute, in which the machine may become faster or slower.
    copyRates.push(...(await copyRounds()));
    const copy = median(copyRates);
    const best = bestSustained(steps);
    const fastify = await startFastifyPipeline(world, receiver, FASTIFY_PORTS);
    const fastifySteps = await rampUp(fastify, { ...load, label: 'fastify-bullmq' });
    const fastifyBest = bestSustained(fastifySteps);
    return {
      bench: 'e2e',
      ratios: {
        'ours/copy': best.rate / copy,
        'ours/wanted': best.rate / copy / WANTED_TO_COPY,
        'ours/fastify-bullmq': best.rate / fastifyBest.rate,
      },
      rates: {
        'events, sustained': best.rate,
        'fastify-bullmq events, sustained': fastifyBest.rate,
        'copy rows': copy,
      },
      latencyMs: {
        p50: best.p50Ms,
        p99: best.p99Ms,
        'p99.9': best.p999Ms,
        'fastify-bullmq p50': fastifyBest.p50Ms,
        'fastify-bullmq p99': fastifyBest.p99Ms,
      },
      details: {
        copy_rates: copyRates.map(Math.round),
        steps,
        fastify_bullmq_steps: fastifySteps,
        batch_size: BATCH_SIZE,
        seconds: load.seconds,
      },
      versions: world.versions,
    };
  });
}

/** Best rate of the database, in rows a second, by events that came the whole way. */
async function prepareCopy(
  { database }: World,
  source: EventSource,
): Promise<() => Promise<number[]>> {
  await makeCopyTable(database);
  for (let sent = 0; sent < COPIED_ROWS; sent += 500) {
    await source.post(
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
  return async () => {
    const rates: number[] = [];
    for (let round = 0; round < COPY_ROUNDS; round++)
      rates.push(await copyRowsPerSecond(database, file));
    return rates;
  };
}
