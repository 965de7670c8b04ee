/**
 * Real workers, killed with SIGKILL at every step of a replay's life.
 *
 * The webhook's own lane goes on meanwhile. All deliveries of the replay arrive again, in order. One comes a second
 * time only if a worker died in between. The replay ends, with its counts right.
 */
import { BY_TEST } from '@sluice/database/testing/testing';
import { startReplay } from '@sluice/database/replays/replay-start';
import { findReplay } from '@sluice/database/replays/replays';
import type { ReplayKey } from '@sluice/database/replays/replay-log';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCrashWorld, expectAllInOrder, type CrashWorld } from '../support/crash-world.ts';
import { until } from '../support/lane-world.ts';

const REPLAYED = 12;

let world: CrashWorld;
beforeAll(async () => {
  world = await createCrashWorld();
  await world.log(REPLAYED);
  await world.allArrive();
}, 120_000);
afterAll(() => world.close());

const CLAIMS = sql`lock table webhook_replays in access exclusive mode`;
const LOG = sql`lock table delivery_log in access exclusive mode`;
const PROGRESS = sql`select from webhook_replays where state = 'running' for update`;

async function start(): Promise<ReplayKey> {
  const request = {
    criteria: { until: Math.ceil(Date.now() / 1000) + 1, states: ['delivered' as const] },
    ratePerSecond: 1_000,
    createdBy: 'a test',
  };
  const started = await startReplay(world.database, world.lane, request, BY_TEST, Date.now());
  if (started.outcome !== 'started') throw new Error(started.outcome);
  return { ...world.lane, replayId: started.replay.replayId };
}

const find = async (key: ReplayKey) => {
  const replay = await findReplay(world.database, key);
  if (!replay) throw new Error('the replay is gone');
  return replay;
};

/** Brings the worker there, and kills it. */
const STEPS: Readonly<Record<string, () => Promise<ReplayKey>>> = {
  async 'claiming the replay'() {
    const key = await start();
    const release = await world.hold(CLAIMS);
    await world.workerWaitsForLock();
    await world.kill();
    await release();
    return key;
  },
  async 'reading the log'() {
    const release = await world.hold(LOG);
    // The replay is the only reader: the worker that waits for the log has claimed it.
    const key = await insertRunning();
    await world.workerWaitsForLock();
    await world.kill();
    await release();
    return key;
  },
  async 'waiting for the answer'() {
    const request = world.catchRequest();
    const key = await start();
    await request.came;
    await world.kill();
    request.answer();
    return key;
  },
  'keeping a success': () => world.killWhileKeeping(200, PROGRESS, start),
  'keeping a failure': () => world.killWhileKeeping(503, PROGRESS, start),
  async 'waiting until a probe is due'() {
    world.answer = () => 503;
    const key = await start();
    await until(async () => (await find(key)).isFailing);
    await world.kill();
    return key;
  },
};

/** As `startReplay` does, which reads the log to count. */
async function insertRunning(): Promise<ReplayKey> {
  const { rows } = await sql<{ replayId: number }>`
    insert into webhook_replays (environment_id, webhook_id, created_at, created_by, criteria, rate_per_second, total,
                                 through_sequence, cursor_sequence, endpoint)
    select environment_id, webhook_id, now(), 'a test', '{}', 1000, ${world.loggedCount}, ${world.loggedCount}, 0, endpoint from webhooks
    returning replay_id as "replayId"`.execute(world.database);
  return { ...world.lane, replayId: rows[0]?.replayId ?? 0 };
}

test.each(Object.keys(STEPS))(
  'a worker dies %s: the replay is complete and in order, and the lane goes on',
  async (step) => {
    const before = world.arrivals.length;
    const loggedBefore = world.loggedCount;
    const key = (await STEPS[step]?.()) as ReplayKey;
    world.answer = () => 200;
    await world.log(3);
    await world.replace();
    await until(async () => (await find(key)).state === 'done');
    await world.allArrive();

    const replay = await find(key);
    const arrived = world.arrivals.slice(before);
    const isLive = ({ eventId }: { eventId: string }) => Number(eventId.slice(1)) > loggedBefore;
    expectAllInOrder(
      arrived.filter((arrival) => !isLive(arrival)),
      loggedBefore,
    );
    expect(replay).toMatchObject({ delivered: loggedBefore, abandoned: 0 });
    expect(arrived.filter(isLive).map(({ eventId }) => eventId)).toEqual(
      [1, 2, 3].map((place) => `e${loggedBefore + place}`),
    );
  },
  240_000,
);
