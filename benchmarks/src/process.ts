/**
 * Rate of one worker from commit batches to rows, on both brokers. Against the floor, `COPY` of the same event rows into a
 * table with the same indexes; and against graphile-worker, which many would run, with one job an event that inserts that
 * row.
 *
 * Ours also claims each commit batch and each event id, finds the person, and takes and ends the job. All take turns in one
 * run and one database, on a durable Postgres (`fsync`, `synchronous_commit`). With `--webhooks 1,10`, rounds beside so
 * many webhooks that take all events follow, on Redis. The webhooks are disabled, so that deliveries are only logged.
 *
 * The worker is warm, as one that has run for a minute: V8 goes on compiling for its first 400,000 events, each of which takes
 * half as long again. Rounds in which the host of
 * a virtual machine took much CPU are run again (`host-steal.ts`).
 */
import { parseArgs } from 'node:util';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import {
  copyRowsPerSecond,
  countOf,
  emptyEvents,
  makeCopyTable,
  writeEventRows,
} from './copy-floor.ts';
import { endpointOf, replaceWebhooks } from './delivery-world.ts';
import { calmestRounds, stolenShares } from './host-steal.ts';
import { BACKENDS, startPausedWorkers, type Backend } from './paused-workers.ts';
import { startGraphile } from './process-graphile.ts';
import { addEvents, EVENT_DATA } from './queued-events.ts';
import { median, type Report } from './report.ts';
import { withWorld } from './world.ts';

const SHARD_COUNT = 4;
const PERSON_COUNT = 1_000;

/** An event took the worker 14 µs in its first 30,000, 10.5 after 200,000 and 8.7 from 400,000 on (EPYC, 2026-11-25). */
const WARM_UP_EVENTS = 400_000;

/** No process listens there. */
const RECEIVER_PORT = 9;

/** Jobs of one round, fewer than our events: one takes ten times as long as an event takes us. */
const GRAPHILE_JOBS = 5_000;

interface Round {
  readonly eventsPerSecond: number;
  readonly workerCpu: number;
}

export async function benchProcess(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      rounds: { type: 'string', default: '5' },
      events: { type: 'string', default: '100000' },
      operations: { type: 'string', default: '1000' },
      webhooks: { type: 'string' },
    },
  });
  const rounds = Number(values.rounds);
  const eventCount = Number(values.events);
  const operationCount = Number(values.operations);
  const webhookCounts = values.webhooks?.split(',').map(Number) ?? [];
  const queued = (count: number) => ({
    count,
    personCount: PERSON_COUNT,
    shardCount: SHARD_COUNT,
    operationsPerCommitBatch: operationCount,
  });

  return withWorld('full', async (world) => {
    const { database } = world;
    await makeCopyTable(database);
    const workers = await startPausedWorkers(world, SHARD_COUNT);
    const runOurs = async (backend: Backend, count: number): Promise<Round> => {
      await emptyEvents(database);
      const { seconds, workerCpu } = await workers.process(backend, (producer) =>
        addEvents(producer, queued(count)),
      );
      const stored = await countOf(database, 'events');
      if (stored !== count) throw new Error(`${count} events queued, ${stored} rows`);
      return { eventsPerSecond: count / seconds, workerCpu };
    };

    /** @returns events a second beside so many disabled webhooks that take them all. */
    const runBeside = async (webhookCount: number): Promise<number> => {
      const endpoints = Array.from({ length: webhookCount }, (_, place) =>
        endpointOf(place, RECEIVER_PORT),
      );
      await replaceWebhooks(database, endpoints, 'own');
      await sql`
        update lanes set is_paused = true where environment_id = ${DEMO.environmentId}`.execute(
        database,
      );
      const { eventsPerSecond } = await runOurs('redis', eventCount);
      const logged = await countOf(database, 'delivery_log');
      if (logged !== eventCount * webhookCount)
        throw new Error(`${eventCount} events for ${webhookCount} webhooks, ${logged} deliveries`);
      await replaceWebhooks(database, []);
      return eventsPerSecond;
    };

    // The people, and warm code on every side.
    for (const backend of BACKENDS) {
      await workers.warmUp(backend, (producer) => addEvents(producer, queued(WARM_UP_EVENTS)));
      await emptyEvents(database);
      await workers.warmUp(backend, (producer) => addEvents(producer, queued(eventCount)));
    }
    for (const count of webhookCounts) await runBeside(count);
    const file = await writeEventRows(database);
    await copyRowsPerSecond(database, file);
    const runGraphile = await startGraphile(world, EVENT_DATA);
    await runGraphile(GRAPHILE_JOBS);

    const measured = await calmestRounds(rounds, async (round) => {
      const show = (line: string): void => console.log(`${round} ${line}`);
      const runAndShow = async (backend: Backend): Promise<Round> => {
        const ours = await runOurs(backend, eventCount);
        show(
          `${backend.padEnd(9)} ${Math.round(ours.eventsPerSecond)} events/s, worker ${(ours.workerCpu * 100).toFixed(0)} % of a core`,
        );
        return ours;
      };
      const copyAndShow = async (): Promise<number> => {
        const copy = await copyRowsPerSecond(database, file);
        show(`copy      ${Math.round(copy)} rows/s`);
        return copy;
      };
      const copies = [await copyAndShow()];
      const redis = await runAndShow('redis');
      copies.push(await copyAndShow());
      const postgres = await runAndShow('postgres');
      copies.push(await copyAndShow());
      const beside: number[] = [];
      for (const count of webhookCounts) {
        const eventsPerSecond = await runBeside(count);
        show(`redis beside ${count} webhooks ${Math.round(eventsPerSecond)} events/s`);
        beside.push(eventsPerSecond);
      }
      const graphile = await runGraphile(GRAPHILE_JOBS);
      show(`graphile-worker ${Math.round(graphile)} events/s`);
      const [before = NaN, between = NaN, after = NaN] = copies;
      return {
        redis,
        postgres,
        // On both sides of ours, so that a machine that becomes faster or slower does not decide.
        copy: { redis: (before + between) / 2, postgres: (between + after) / 2 },
        beside,
        graphile,
      };
    });
    const results = measured.map(({ result }) => result);

    const ratio = (backend: Backend): number =>
      median(results.map((round) => round[backend].eventsPerSecond / round.copy[backend]));
    return {
      bench: 'process',
      ratios: {
        'ours/copy': ratio('redis'),
        'ours/copy, postgres backend': ratio('postgres'),
        'ours/graphile-worker': median(
          results.map(({ postgres, graphile }) => postgres.eventsPerSecond / graphile),
        ),
        ...Object.fromEntries(
          webhookCounts.map((count, place) => [
            `beside ${count} webhooks/none`,
            median(
              results.map(({ redis, beside }) => (beside[place] ?? NaN) / redis.eventsPerSecond),
            ),
          ]),
        ),
      },
      rates: {
        ours: median(results.map(({ redis }) => redis.eventsPerSecond)),
        'ours, postgres backend': median(results.map(({ postgres }) => postgres.eventsPerSecond)),
        copy: median(results.flatMap(({ copy }) => Object.values(copy))),
        'graphile-worker': median(results.map(({ graphile }) => graphile)),
      },
      latencyMs: {},
      details: {
        events: eventCount,
        operations_per_envelope: operationCount,
        shards: SHARD_COUNT,
        people: PERSON_COUNT,
        worker_cpu: {
          redis: median(results.map(({ redis }) => redis.workerCpu)),
          postgres: median(results.map(({ postgres }) => postgres.workerCpu)),
        },
        stolen_by_host: stolenShares(measured),
        postgres: 'fsync on, synchronous_commit on, full_page_writes on',
        redis: 'appendonly yes, appendfsync always',
      },
      versions: world.versions,
    };
  });
}
