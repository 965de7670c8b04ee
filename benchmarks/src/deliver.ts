/**
 * Delivery end to end against the smallest possible delivery. They run interleaved with 1, 100 and 1,000 webhooks, each
 * at an address of its own:
 *
 * - (a) `dispatch`: an undici `dispatch` loop that signs and posts the same bodies from memory.
 * - (b) `ours`: the worker process, with rows in the log → signed POST → attempt and cursor recorded, in a Postgres that
 *   waits for its disk, woken through a Redis that does, or with `--queues postgres` through it
 *
 * Each delivery is about another person, or about one of `--people 10` in turns. Then at most ten of a webhook are in
 * flight. `--events own` delivers tracked events, `--events published` messages to endpoints of applications. The
 * receiver and Postgres share the machine's cores. A round of ours is compared with the mean of the loop's two around it.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { cpuSecondsOf, startChildServer } from './child-server.ts';
import type { DispatchReport } from './deliver-dispatch-loop.ts';
import {
  endpointOf,
  hasUnfinished,
  logDeliveries,
  withDeliveryWorld,
  release,
  replaceWebhooks,
  reportedOf,
  startDeliveryWorker,
  type DeliveryWorld,
  type Reported,
} from './delivery-world.ts';
import { calmestRounds, stolenShares } from './host-steal.ts';
import { median, type Report } from './report.ts';

const RECEIVER_PORT = 18_091;
const RECEIVER = `http://127.0.0.1:${RECEIVER_PORT}`;
const WORKER_PORT = 18_092;
/** A look reads the index of lanes with work. Counting the deliveries of 10,000 lanes took 14 % of a core. */
const POLL_INTERVAL_MS = 25;
const DEADLINE_MS = 120_000;

interface Round {
  readonly perSecond: number;
  /** Microseconds of CPU a delivery. */
  readonly cpuUs: Record<string, number>;
}

export async function benchDeliver(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      deliveries: { type: 'string', default: '30000' },
      rounds: { type: 'string', default: '5' },
      webhooks: { type: 'string', default: '1,100,1000' },
      connections: { type: 'string', default: '128' },
      queues: { type: 'string', default: 'redis' },
      workers: { type: 'string', default: '1' },
      people: { type: 'string' },
      events: { type: 'string', default: 'reports' },
    },
  });
  const broker = values.queues;
  if (broker !== 'redis' && broker !== 'postgres')
    throw new Error(`--queues wants redis or postgres, not ${broker}`);
  const cases = values.webhooks.split(',').map(Number);
  const rounds = Number(values.rounds);
  const reported = reportedOf(values.events);
  const people = values.people === undefined ? undefined : Number(values.people);
  return withDeliveryWorld(async (world) => {
    const receiver = await startChildServer({
      file: join(import.meta.dirname, 'receiver-server.ts'),
      environment: { PORT: String(RECEIVER_PORT) },
      url: RECEIVER,
      readyPath: '/count',
    });
    world.onClose(() => receiver.stop());
    const workers = await Promise.all(
      Array.from({ length: Number(values.workers) }, (_, index) =>
        startDeliveryWorker(world, WORKER_PORT + index),
      ),
    );
    const workerCpuSeconds = async (): Promise<number> =>
      (await Promise.all(workers.map((worker) => worker.cpuSeconds()))).reduce(
        (sum, seconds) => sum + seconds,
        0,
      );
    const dispatch = fork(join(import.meta.dirname, 'deliver-dispatch-loop.ts'), {
      env: { ...process.env, DATABASE_URL: world.databaseUrl, IN_FLIGHT: values.connections },
    });
    world.onClose(() => dispatch.kill());
    await once(dispatch, 'message');

    const dispatchRound = async (): Promise<Round> => {
      const before = await receivedCount();
      dispatch.send('go');
      const [report] = (await once(dispatch, 'message')) as [DispatchReport];
      if (report.failures > 0 || (await receivedCount()) - before !== report.count)
        throw new Error(`dispatch: ${report.failures} failures of ${report.count}`);
      return {
        perSecond: report.count / report.seconds,
        cpuUs: { dispatch: (report.cpuSeconds / report.count) * 1e6 },
      };
    };

    const oursRound = async (webhookIds: readonly number[], count: number): Promise<Round> => {
      const before = await receivedCount();
      const cpuBefore = [await workerCpuSeconds(), await receiver.cpuSeconds()] as const;
      const postgresBefore = await postgresCpuSeconds(world);
      const startedAtMs = performance.now();
      await release(world.database, world.producer, webhookIds);
      while (await hasUnfinished(world.database)) {
        if (performance.now() - startedAtMs > DEADLINE_MS)
          throw new Error('ours: not done in time');
        await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
      }
      const seconds = (performance.now() - startedAtMs) / 1000;
      const received = (await receivedCount()) - before;
      const { rows } = await sql<{ kept: number }>`
      select count(*)::float8 as kept from delivery_attempts
       where environment_id = ${DEMO.environmentId} and outcome = 'delivered'`.execute(
        world.database,
      );
      if (received !== count || rows[0]?.kept !== count)
        throw new Error(`ours: ${count} logged, ${received} received, ${rows[0]?.kept} recorded`);
      return {
        perSecond: count / seconds,
        cpuUs: {
          worker: (((await workerCpuSeconds()) - cpuBefore[0]) / count) * 1e6,
          receiver: (((await receiver.cpuSeconds()) - cpuBefore[1]) / count) * 1e6,
          postgres:
            (cpuSecondsSince(postgresBefore, await postgresCpuSeconds(world)) / count) * 1e6,
        },
      };
    };

    const ratios: Record<string, number> = {};
    const rates: Record<string, number> = {};
    const details: Record<string, unknown> = {};
    for (const webhooks of cases) {
      const countEach = Math.ceil(Number(values.deliveries) / webhooks);
      const endpoints = Array.from({ length: webhooks }, (_, place) =>
        endpointOf(place, RECEIVER_PORT),
      );
      const runRound = async (label: string): Promise<{ ours: Round; dispatch: Round }> => {
        const webhookIds = await replaceWebhooks(world.database, endpoints, reported);
        await logDeliveries(world.database, countEach, people, reported);
        // On both sides of ours, so that a machine that becomes faster or slower does not decide.
        const dispatchedBefore = await dispatchRound();
        const ours = await oursRound(webhookIds, countEach * webhooks);
        const dispatched = meanOf(dispatchedBefore, await dispatchRound());
        console.log(
          `${String(webhooks).padStart(5)} webhooks  ${label.padEnd(7)}  ` +
            `ours ${Math.round(ours.perSecond)}/s  dispatch ${Math.round(dispatched.perSecond)}/s  ` +
            `ratio ${(ours.perSecond / dispatched.perSecond).toFixed(3)}  µs of CPU ${Object.entries(
              { ...ours.cpuUs, ...dispatched.cpuUs },
            )
              .map(([name, us]) => `${name} ${us.toFixed(0)}`)
              .join(', ')}`,
        );
        return { ours, dispatch: dispatched };
      };
      await runRound('warm-up');
      const calmest = await calmestRounds(rounds, (round) => runRound(String(round)));
      const measured = calmest.map(({ result }) => result);
      const name = `${webhooks} webhook${webhooks === 1 ? '' : 's'}`;
      ratios[`ours/dispatch, ${name}`] = median(
        measured.map((round) => round.ours.perSecond / round.dispatch.perSecond),
      );
      rates[`ours, ${name}`] = median(measured.map((round) => round.ours.perSecond));
      rates[`dispatch, ${name}`] = median(measured.map((round) => round.dispatch.perSecond));
      const last = measured.at(-1);
      details[`stolen by host, ${name}`] = stolenShares(calmest);
      details[`cpu µs a delivery, ${name}`] = { ...last?.ours.cpuUs, ...last?.dispatch.cpuUs };
    }
    return {
      bench: nameOf(reported, people),
      ratios,
      rates,
      latencyMs: {},
      details: {
        deliveries_a_round: Number(values.deliveries),
        dispatch_in_flight: Number(values.connections),
        events: reported,
        people_a_webhook: people ?? 'one a delivery',
        ...details,
        queues: broker,
        worker_processes: workers.length,
        redis: 'appendonly yes, appendfsync always',
        postgres: 'fsync on, synchronous_commit on',
      },
      versions: world.versions,
    };
  }, broker);
}

const nameOf = (reported: Reported, people: number | undefined): string =>
  [
    'deliver',
    ...(reported === 'reports' ? [] : [reported]),
    ...(people === undefined ? [] : [`${people}-people`]),
  ].join('-');

const meanOf = (one: Round, other: Round): Round => ({
  perSecond: (one.perSecond + other.perSecond) / 2,
  cpuUs: Object.fromEntries(
    Object.entries(one.cpuUs).map(([name, us]) => [name, (us + (other.cpuUs[name] ?? NaN)) / 2]),
  ),
});

async function receivedCount(): Promise<number> {
  return Number(await (await fetch(`${RECEIVER}/count`)).text());
}

/** CPU of each backend that serves clients now, by its process id. */
async function postgresCpuSeconds(world: DeliveryWorld): Promise<Map<number, number>> {
  const { rows } = await sql<{ pid: number }>`
    select pid from pg_stat_activity where pid <> pg_backend_pid()`.execute(world.database);
  const seconds = await Promise.all(rows.map(({ pid }) => cpuSecondsOf(pid).catch(() => 0)));
  return new Map(rows.map(({ pid }, place) => [pid, seconds[place] ?? 0]));
}

/** Of the backends that still exist: the worker's connections outlive a round, so all of them are counted. */
function cpuSecondsSince(before: Map<number, number>, now: Map<number, number>): number {
  return [...now].reduce((sum, [pid, seconds]) => sum + seconds - (before.get(pid) ?? 0), 0);
}
