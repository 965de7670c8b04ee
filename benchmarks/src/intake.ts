/**
 * Durable intake against the floor and a usual server, in one run:
 *
 * - (a) `floor`: a uWebSockets.js handler that reads the body and answers.
 * - (b) `ours`: our intake, answered after Redis with `appendfsync always` has the event.
 * - (c) `fastify-bullmq`: Fastify adding one BullMQ job a request, on the same Redis
 *
 * `--processes 2` runs each as two processes on one port, as an operator with two cores would.
 *
 * The contenders are interleaved. Every other round has the reverse order, so a machine that changes its
 * speed does not decide. The ratios come from wrk (one thread); autocannon is printed beside it. The load
 * generator shares the machine's cores. Rounds with much stolen time are run again (`host-steal.ts`).
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Redis } from 'ioredis';
import {
  cpuSecondsOf,
  INTAKE_ARGUMENTS,
  startChildServer,
  type ChildServer,
} from './child-server.ts';
import { calmestRounds, stolenShares } from './host-steal.ts';
import { bodies, pinApart, trackLoad } from './intake-load.ts';
import { loadWithAutocannon, loadWithWrk, requireWrk, type LoadResult } from './load.ts';
import { countQueued, emptyQueues } from './queued-events.ts';
import { median, type Report } from './report.ts';
import { withWorld } from './world.ts';

const SHARD_COUNT = 4;
const CONTENDERS = ['floor', 'ours', 'fastify-bullmq'] as const;
type Contender = (typeof CONTENDERS)[number];

export async function benchIntake(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      seconds: { type: 'string', default: '5' },
      rounds: { type: 'string', default: '5' },
      connections: { type: 'string', default: '512' },
      processes: { type: 'string', default: '1' },
    },
  });
  const durationSeconds = Number(values.seconds);
  const rounds = Number(values.rounds);
  const processCount = Number(values.processes);
  await requireWrk();

  return withWorld('none', async (world) => {
    const { redis, redisServer } = world;

    const startContender = async (file: string, environment: Record<string, string>) => {
      const server = await startChildServer({
        file: join(import.meta.dirname, file),
        environment,
        url: `http://127.0.0.1:${environment.PORT}`,
        readyPath: '/',
        processCount,
        nodeArguments: INTAKE_ARGUMENTS,
      });
      world.onClose(() => server.stop());
      return server;
    };
    const servers: Record<Contender, ChildServer> = {
      floor: await startContender('intake-floor-server.ts', { PORT: '18081' }),
      ours: await world.startService(
        'intake',
        18_082,
        { REDIS_URL: redisServer.url, SHARD_COUNT: String(SHARD_COUNT) },
        processCount,
      ),
      'fastify-bullmq': await startContender('intake-fastify-server.ts', {
        PORT: '18083',
        REDIS_URL: redisServer.url,
      }),
    };
    const isPinned = processCount === 1 && (await pinApart(world, Object.values(servers)));
    const loadOn = (contender: Contender, seconds: number) =>
      trackLoad(servers[contender].url, Number(values.connections), seconds);

    await checkCorrectness(servers.ours.url, redis);
    for (const contender of CONTENDERS) await loadWithWrk(loadOn(contender, 4));

    const autocannon: Partial<Record<Contender, LoadResult>> = {};
    let memoryBytes = 0;
    const measured = await calmestRounds(rounds, async (round) => {
      const results: Partial<Record<Contender, LoadResult>> = {};
      const cpu = { ours: 0, redis: 0 };
      for (const contender of round % 2 === 1 ? CONTENDERS : CONTENDERS.toReversed()) {
        await emptyQueues(redis);
        const before = [
          await servers.ours.cpuSeconds(),
          await cpuSecondsOf(redisServer.pid),
        ] as const;
        const result = await loadWithWrk(loadOn(contender, durationSeconds));
        if (result.failures > 0)
          throw new Error(`${contender}: ${result.failures} failed requests`);
        results[contender] = result;
        if (contender === 'ours') {
          memoryBytes = Math.max(memoryBytes, await servers.ours.residentBytes());
          cpu.ours = ((await servers.ours.cpuSeconds()) - before[0]) / durationSeconds;
          cpu.redis = ((await cpuSecondsOf(redisServer.pid)) - before[1]) / durationSeconds;
        }
        console.log(describe(`wrk ${round}`, contender, result));
      }
      return { ...(results as Record<Contender, LoadResult>), cpu };
    });
    const results = Object.fromEntries(
      CONTENDERS.map((contender) => [contender, measured.map(({ result }) => result[contender])]),
    ) as Record<Contender, LoadResult[]>;
    for (const contender of CONTENDERS) {
      await emptyQueues(redis);
      const result = await loadWithAutocannon(loadOn(contender, durationSeconds));
      autocannon[contender] = result;
      console.log(describe('autocannon', contender, result));
    }

    const rate = (contender: Contender) =>
      median(results[contender].map((result) => result.requestsPerSecond));
    return {
      bench: processCount === 1 ? 'intake' : `intake-${processCount}-processes`,
      ratios: {
        'ours/floor': median(
          results.ours.map(
            (result, i) => result.requestsPerSecond / (results.floor[i]?.requestsPerSecond ?? NaN),
          ),
        ),
        'ours/fastify-bullmq': median(
          results.ours.map(
            (result, i) =>
              result.requestsPerSecond / (results['fastify-bullmq'][i]?.requestsPerSecond ?? NaN),
          ),
        ),
        'autocannon ours/floor':
          (autocannon.ours?.requestsPerSecond ?? NaN) /
          (autocannon.floor?.requestsPerSecond ?? NaN),
        'autocannon ours/fastify-bullmq':
          (autocannon.ours?.requestsPerSecond ?? NaN) /
          (autocannon['fastify-bullmq']?.requestsPerSecond ?? NaN),
      },
      rates: Object.fromEntries(CONTENDERS.map((contender) => [contender, rate(contender)])),
      latencyMs: Object.fromEntries(
        CONTENDERS.flatMap((contender) => [
          [`${contender} p50`, median(results[contender].map((result) => result.p50Ms))],
          [`${contender} p99`, median(results[contender].map((result) => result.p99Ms))],
        ]),
      ),
      details: {
        processes: processCount,
        pinned: isPinned,
        connections: Number(values.connections),
        shards: SHARD_COUNT,
        body_bytes: bodies[0]?.length,
        ours_resident_mb: Math.round(memoryBytes / 2 ** 20),
        ours_cpu: {
          ours: median(measured.map(({ result }) => result.cpu.ours)),
          redis: median(measured.map(({ result }) => result.cpu.redis)),
        },
        client_cpu: {
          wrk: Object.fromEntries(
            CONTENDERS.map((name) => [
              name,
              median(results[name].map((result) => result.clientCpu)),
            ]),
          ),
          autocannon: Object.fromEntries(
            CONTENDERS.map((name) => [name, autocannon[name]?.clientCpu]),
          ),
        },
        stolen_by_host: stolenShares(measured),
        redis: 'appendonly yes, appendfsync always',
      },
      versions: world.versions,
    };
  });
}

/** Each call that is answered 200 is in the broker once. */
async function checkCorrectness(url: string, redis: Redis): Promise<void> {
  const marker = randomUUID();
  const headers = { Authorization: `Basic ${Buffer.from('demo_write_key:').toString('base64')}` };
  const answers = await Promise.all(
    Array.from({ length: 500 }, (_, n) =>
      fetch(`${url}/v1/track`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ userId: `check-${n}`, event: marker, messageId: `${marker}-${n}` }),
      }),
    ),
  );
  if (answers.some((answer) => answer.status !== 200)) throw new Error('a valid call was refused');
  const found = await countQueued(redis, marker);
  if (found !== 500) throw new Error(`500 events acknowledged, ${found} in Redis`);
}

function describe(label: string, contender: string, result: LoadResult): string {
  return (
    `${label.padEnd(12)} ${contender.padEnd(15)} ${Math.round(result.requestsPerSecond).toLocaleString('en').padStart(8)} req/s  ` +
    `p50 ${result.p50Ms.toFixed(2)} ms  p99 ${result.p99Ms.toFixed(2)} ms  client ${(result.clientCpu * 100).toFixed(0)} % of a core`
  );
}
