/**
 * Real workers, killed with SIGKILL at every step of a lane's life.
 *
 * They run on a real Postgres and a real Redis that is flushed in between. Every event arrives, in order. An event that
 * was answered with a 200 comes again only if a worker died in between, with the same id.
 *
 * `SLUICE_SEED` repeats a run.
 */
import { randomInt } from 'node:crypto';
import { findLane } from '@sluice/database/delivery/lanes';
import { pick, seededRandom } from '@sluice/domain/values/seeded-random';
import { sql } from 'kysely';
import { afterAll, beforeAll, test } from 'vitest';
import { createCrashWorld, expectAllInOrder, type CrashWorld } from '../support/crash-world.ts';
import { until } from '../support/lane-world.ts';

const RANDOM_STEPS = 3;

let world: CrashWorld;
beforeAll(async () => {
  world = await createCrashWorld();
}, 120_000);
afterAll(() => world.close());

const PROGRESS = sql`select from lanes where environment_id = 1 for no key update`;
/** The claim of a lane reads its workspace; the log of an event does not. */
const CLAIMS = sql`lock table environments in access exclusive mode`;
const LOG = sql`lock table delivery_log in access exclusive mode`;

/** Brings the worker there, and kills it. */
const STEPS: Readonly<Record<string, () => Promise<void>>> = {
  async 'claiming the lane'() {
    const release = await world.hold(CLAIMS);
    await world.log(3);
    await world.workerWaitsForLock();
    await world.kill();
    await release();
  },
  async 'reading the log'() {
    const releaseClaims = await world.hold(CLAIMS);
    await world.log(3);
    const releaseLog = await world.hold(LOG);
    await releaseClaims();
    await until(async () => (await findLane(world.database, world.lane))?.isHeld === true);
    await world.workerWaitsForLock();
    await world.kill();
    await releaseLog();
  },
  async 'waiting for the answer'() {
    const request = world.catchRequest();
    await world.log(3);
    await request.came;
    await world.kill();
    request.answer();
  },
  'keeping a success': () => world.killWhileKeeping(200, PROGRESS, () => world.log(3)),
  'keeping a failure': () => world.killWhileKeeping(503, PROGRESS, () => world.log(3)),
  async 'done with the lane, before it is woken for its probe'() {
    const request = world.catchRequest(503);
    await world.log(3);
    await request.came;
    await world.redisCommand('CLIENT', 'PAUSE', '60000', 'WRITE');
    request.answer();
    await until(
      async () =>
        (await world.isFailing()) && !(await findLane(world.database, world.lane))?.isHeld,
    );
    await world.kill();
    await world.redisCommand('CLIENT', 'UNPAUSE');
  },
  async 'waiting for the answer to a probe'() {
    world.answer = () => 503;
    await world.log(3);
    await until(() => world.isFailing());
    const probe = world.catchRequest();
    await probe.came;
    await world.kill();
    probe.answer();
  },
  async 'waiting until a probe is due, when Redis forgets all wake-ups'() {
    world.answer = () => 503;
    await world.log(3);
    await until(() => world.isFailing());
    await world.kill();
    await world.redisCommand('FLUSHALL');
  },
};

test.each(Object.keys(STEPS))(
  'a worker dies %s: every delivery arrives, and in order',
  async (step) => {
    await STEPS[step]?.();
    world.answer = () => 200;
    await world.replace();
    await world.allArrive();
    expectAllInOrder(world.arrivals, world.loggedCount);
  },
  240_000,
);

test('a worker lives on when Redis is flushed in the middle', async () => {
  const request = world.catchRequest();
  await world.log(10);
  await request.came;
  await world.redisCommand('FLUSHALL');
  request.answer();
  world.answer = () => 200;
  await world.allArrive();
  await world.log(10);
  await world.allArrive();
  expectAllInOrder(world.arrivals, world.loggedCount);
}, 240_000);

const seed = Number(process.env['SLUICE_SEED'] ?? randomInt(2 ** 31));

test(`deaths at random steps, failures at random, seed ${seed}`, async () => {
  const random = seededRandom(seed);
  const names = Object.keys(STEPS);
  for (let round = 0; round < RANDOM_STEPS; round++) {
    await STEPS[pick(random, names)]?.();
    world.answer = () => (random() < 0.3 ? 503 : 200);
    await world.replace();
    await world.log(Math.floor(random() * 20));
  }
  await world.allArrive();
  expectAllInOrder(world.arrivals, world.loggedCount);
}, 600_000);
