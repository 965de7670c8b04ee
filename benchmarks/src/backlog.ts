/**
 * One dead endpoint and what it holds back: 10⁴, 10⁵, 10⁶ deliveries (`--sizes` for more). At each size
 * the time of every statement that the lane, and whoever looks at it, makes; and what Redis holds.
 * Neither may grow with the backlog.
 */
import { parseArgs } from 'node:util';
import { appendDeliveries, listDeliveriesAfter } from '@sluice/database/deliveries';
import { findLaneState } from '@sluice/database/lane-states';
import { recordProgress } from '@sluice/database/lane-progress';
import { claimLane, listLanesToWake, type LaneKey } from '@sluice/database/lanes';
import { DEMO } from '@sluice/database/seed-demo';
import { sql } from 'kysely';
import { withDeliveryWorld, replaceWebhooks, type DeliveryWorld } from './delivery-world.ts';
import { median, type Report } from './report.ts';

const REPETITIONS = 60;
const LEASE_MS = 15_000;
const INSERT_SIZE = 200_000;

export async function benchBacklog(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: { sizes: { type: 'string', default: '10000,100000,1000000' } },
  });
  const sizes = values.sizes.split(',').map(Number);
  return withDeliveryWorld(async (world) => {
    const latencyMs: Record<string, number> = {};
    const redisBytes: Record<string, number> = {};
    const curve: Record<string, number>[] = [];
    for (const size of sizes) {
      const lane = await makeFailingLane(world, size);
      const times = await timeStatements(world, lane);
      const bytes = await redisBytesOf(world, lane);
      redisBytes[String(size)] = bytes;
      curve.push(times);
      for (const [name, ms] of Object.entries(times)) latencyMs[`${name}, ${size} held back`] = ms;
      const text = Object.entries(times).map(([name, ms]) => `${name} ${ms.toFixed(2)}`);
      console.log(
        `${String(size).padStart(9)} held back  ms: ${text.join(', ')}  Redis ${bytes} B`,
      );
    }
    const [first = {}, last = {}] = [curve[0], curve.at(-1)];
    const [firstBytes = NaN, lastBytes = NaN] = [sizes[0], sizes.at(-1)].map(
      (size) => redisBytes[String(size)],
    );
    return {
      bench: 'backlog',
      ratios: {
        ...Object.fromEntries(
          Object.entries(last).map(([name, ms]) => [
            `${name}, most/least held back`,
            ms / (first[name] ?? NaN),
          ]),
        ),
        'Redis bytes, most/least held back': lastBytes / firstBytes,
      },
      rates: {},
      latencyMs,
      details: { redis_bytes: redisBytes },
      versions: world.versions,
    };
  });
}

/** A webhook whose first delivery fails, with so many behind it. */
async function makeFailingLane(world: DeliveryWorld, size: number): Promise<LaneKey> {
  const { database } = world;
  const [webhookId = 0] = await replaceWebhooks(database, ['http://127.0.0.1:9/']);
  for (let from = 1; from <= size; from += INSERT_SIZE) {
    await sql`
      insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, body)
      select ${DEMO.environmentId}, ${webhookId}, n, 'held-' || n, 'email_delivered', now(), repeat('x', 400)
        from generate_series(${from}::int, ${Math.min(from + INSERT_SIZE - 1, size)}::int) n`.execute(
      database,
    );
  }
  await sql`
    update lanes set last_sequence = ${size}, state = 'failing', attempted_sequence = 1, next_probe_at = now()
     where webhook_id = ${webhookId}`.execute(database);
  await sql`
    insert into delivery_attempts (environment_id, webhook_id, sequence, attempt, duration_ms, started_at, outcome, failure)
    values (${DEMO.environmentId}, ${webhookId}, 1, 1, 5, now(), 'retrying', 'connection_refused')`.execute(
    database,
  );
  await sql`vacuum analyze delivery_log`.execute(database);
  await sql`vacuum analyze lanes`.execute(database);
  return { environmentId: DEMO.environmentId, webhookId };
}

/** The life of a probe, and of those who look on, again and again: the middle time of each. */
async function timeStatements(
  world: DeliveryWorld,
  lane: LaneKey,
): Promise<Record<string, number>> {
  const { database } = world;
  const times: Record<string, number[]> = {};
  const time = async <Result>(name: string, run: () => Promise<Result>): Promise<Result> => {
    const startedAtMs = performance.now();
    const result = await run();
    (times[name] ??= []).push(performance.now() - startedAtMs);
    return result;
  };
  for (let repetition = 0; repetition < REPETITIONS; repetition++) {
    const nowMs = Date.now() + 60_000;
    await time('sweep', () => listLanesToWake(database, nowMs, 100));
    const claimed = await time('claim', () => claimLane(database, lane, LEASE_MS, nowMs));
    if (!claimed) throw new Error('the lane could not be claimed');
    const read = (limit: number, after: number) =>
      listDeliveriesAfter(database, [
        {
          lane,
          after,
          attemptedThrough: claimed.attemptedThrough,
          limit,
          readFromDay: claimed.readFromDay,
        },
      ]);
    await time('read the head', () => read(1, claimed.cursor));
    await time('read 256 in the middle', () => read(256, Math.floor(claimed.lastSequence / 2)));
    await time('keep', () =>
      recordProgress(
        database,
        lane,
        claimed.fencing,
        {
          snapshot: { ...claimed, state: 'failing', nextProbeAtMs: nowMs },
          attempts: [],
          endpoint: claimed.endpoint,
          isLast: true,
        },
        LEASE_MS,
        nowMs,
      ),
    );
    await time('state', () => findLaneState(database, lane));
    await time('log 20 more', () =>
      database.transaction().execute((transaction) =>
        appendDeliveries(
          transaction,
          Array.from({ length: 20 }, (_, n) => ({
            environmentId: DEMO.environmentId,
            eventId: `more-${repetition}-${n}`,
            eventType: 'email_delivered' as const,
            objectType: 'email' as const,
            metric: 'delivered',
            occurredAtMs: nowMs,
            data: { customer_id: '42' },
          })),
        ),
      ),
    );
  }
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, median(all)]));
}

/** What the queue holds of this lane: its wake-up for the next probe. */
async function redisBytesOf(world: DeliveryWorld, lane: LaneKey): Promise<number> {
  await world.redis.flushall();
  for (let wakeUp = 0; wakeUp < 100; wakeUp++)
    await world.producer.wakeLaneAt(lane, Date.now() + 3_600_000, Date.now());
  let bytes = 0;
  for (const key of await world.redis.keys('*'))
    bytes += Number(await world.redis.call('MEMORY', 'USAGE', key, 'SAMPLES', '0'));
  return bytes;
}
