/**
 * The node of one workspace is away: the calls of others go on, its own wait. They are applied in order and once when it
 * is back, also if workers die meanwhile.
 *
 * The node is a trigger here, which fails as Citus does for rows that it cannot reach.
 */
import { fileURLToPath } from 'node:url';
import { NumberStock } from '@sluice/database/people/numbers';
import { identify, NOW_MS } from '@sluice/domain/testing/sample-operations';
import { startConsumers, type Consumers } from '@sluice/platform/consumers/queue-consumers';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createCommitBatchProcessor } from '../../../../src/events/commit-batch-processor.ts';
import { inEnvironment } from '../../support/commit-batch-world.ts';
import { createShardsWorld, shardOfBatch, type ShardsWorld } from '../../support/shards-world.ts';

const WORKER = fileURLToPath(new URL('../../../../src/main.ts', import.meta.url));
const PEOPLE = ['a', 'b', 'c', 'd', 'e', 'f'];
const SOON = { timeout: 15_000, interval: 50 };
const LATER = { timeout: 60_000, interval: 50 };

interface Outage {
  readonly world: ShardsWorld;
  readonly away: number;
  readonly there: number;
  cut(): Promise<void>;
  restore(): Promise<void>;
  /** Adds so many calls. Each is about all people of both workspaces, under one of three names, in all shards. */
  add(count: number): Promise<void>;
  /** All people of a workspace have all steps that were added until now. */
  arrive(environmentId: number, wait?: typeof SOON): Promise<void>;
  /** Each person saw each step once and after the one before it. */
  expectInOrder(environmentId: number): Promise<void>;
  expectEmptyQueues(): Promise<void>;
}

async function openOutage(broker: 'redis' | 'postgres'): Promise<Outage> {
  const world = await createShardsWorld(broker);
  onTestFinished(() => world.close());
  const { database } = world;
  const [away, there] = [world.newEnvironment(), world.newEnvironment()];
  await sql`create table nodes_away (environment_id int primary key)`.execute(database);
  await sql`
    create function expect_node() returns trigger language plpgsql as $$
    begin
      if exists (select from nodes_away a where a.environment_id = new.environment_id) then
        raise exception 'connection to the remote node failed' using errcode = '08006';
      end if;
      return new;
    end $$`.execute(database);
  for (const table of ['people', 'events'])
    await sql`
      create trigger expect_node before insert or update on ${sql.table(table)}
      for each row execute function expect_node()`.execute(database);
  const producer = await openProducer(world.brokerOptions);
  onTestFinished(() => producer.close());
  let lastStep = 0;
  const namesOf = (person: string) => [
    `id:${person}`,
    `email:${person}@x.y`,
    `anonymous_id:visitor-${person}`,
  ];
  for (const environmentId of [away, there])
    await world.process(
      inEnvironment(
        environmentId,
        ...PEOPLE.map((person) =>
          identify(`id:${person}`, {
            email: `${person}@x.y`,
            anonymous_id: `visitor-${person}`,
          }),
        ),
      ),
    );
  return {
    world,
    away,
    there,
    async cut() {
      await sql`insert into nodes_away values (${away})`.execute(database);
    },
    async restore() {
      await sql`delete from nodes_away`.execute(database);
    },
    async add(count) {
      const calls = Array.from({ length: count }, () => {
        const step = ++lastStep;
        const operations = PEOPLE.map((person, place) =>
          identify(namesOf(person)[(step + place) % 3] as string, { step }),
        );
        return [away, there].flatMap((environmentId) =>
          inEnvironment(environmentId, ...operations),
        );
      });
      const batches = await world.add(calls);
      expect(new Set(batches.map(shardOfBatch)).size).toBeGreaterThan(4);
    },
    arrive: (environmentId, wait = SOON) =>
      vi.waitFor(async () => {
        const rows = await world.rowsOf('people', environmentId, `attributes -> 'step' as step`);
        expect(rows.map(({ step }) => step)).toEqual(PEOPLE.map(() => lastStep));
      }, wait),
    async expectInOrder(environmentId) {
      const { rows } = await sql<{ id: string; step: { from: number | null; to: number } }>`
        select p.id, e.data -> 'step' as step
          from events e join people p using (environment_id, person_id)
         where environment_id = ${environmentId} and e.data -> 'step' is not null`.execute(
        database,
      );
      for (const person of PEOPLE) {
        const steps = rows.filter(({ id }) => id === person).map(({ step }) => step);
        expect(steps.toSorted((one, other) => one.to - other.to)).toEqual(
          Array.from({ length: lastStep }, (_, index) => ({
            from: index === 0 ? null : index,
            to: index + 1,
          })),
        );
      }
    },
    expectEmptyQueues: () =>
      vi.waitFor(
        async () =>
          expect(await producer.commitBatchCounts()).toEqual(Array.from({ length: 16 }, () => 0)),
        LATER,
      ),
  };
}

const consume = async ({ database, newId, brokerOptions }: ShardsWorld): Promise<Consumers> => {
  const { processCommitBatch } = createCommitBatchProcessor({
    database,
    numbers: new NumberStock(),
    newId,
    tracedProcessing: (process) => process,
    lanes: { taking: () => undefined, wake: async () => {}, monotonicNow: () => 0 },
    countOperations: () => undefined,
    now: () => NOW_MS,
    logger: createLogger('test', 'silent'),
  });
  const consumers = await startConsumers(
    { ...brokerOptions, stalledAfterMs: 60_000 },
    {
      processCommitBatch,
      wakeLane: () => Promise.resolve({ outcome: 'done' }),
      laneConcurrency: 1,
      now: () => performance.now(),
    },
  );
  onTestFinished(() => consumers.close());
  return consumers;
};

describe.each(['redis', 'postgres'] as const)('with queues in %s', (broker) => {
  test('other workspaces go on in all shards, and the one that waits is applied in order and once', async () => {
    const outage = await openOutage(broker);
    const { world, away, there } = outage;
    await consume(world);
    await outage.add(2);
    await outage.arrive(there);
    await outage.arrive(away);

    await outage.cut();
    for (let round = 0; round < 3; round++) {
      await outage.add(4);
      await outage.arrive(there);
    }
    const rows = await world.rowsOf('people', away, `attributes -> 'step' as step`);
    expect(rows.map(({ step }) => step)).toEqual(PEOPLE.map(() => 2));

    await outage.restore();
    await outage.arrive(away, LATER);
    await outage.add(2);
    await outage.arrive(there, LATER);
    await outage.arrive(away, LATER);
    for (const environmentId of [away, there]) await outage.expectInOrder(environmentId);
    await outage.expectEmptyQueues();
  }, 180_000);
});

test('workers that are killed while a workspace waits neither lose nor double a call', async () => {
  const outage = await openOutage('redis');
  const { world, away, there } = outage;
  const { brokerOptions } = world;
  const start = () =>
    startServiceUnderTest(WORKER, {
      DATABASE_URL: brokerOptions.databaseUrl,
      REDIS_URL: brokerOptions.redisUrl ?? '',
      QUEUE_PREFIX: brokerOptions.prefix,
      SHARD_COUNT: '16',
      WORKER_PORT: '0',
      QUEUE_STALLED_AFTER_MS: '1000',
    });
  let workers = await Promise.all([start(), start()]);
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.kill('SIGKILL')));
  });
  await outage.add(1);
  await outage.arrive(there, LATER);
  await outage.cut();
  for (let round = 0; round < 4; round++) {
    await outage.add(3);
    const [oldest, other] = workers;
    if (!oldest || !other) throw new Error('two workers run');
    await oldest.kill('SIGKILL');
    workers = [other, await start()];
    await outage.arrive(there, LATER);
  }
  await outage.restore();
  const [oldest] = workers;
  await outage.add(3);
  await oldest?.kill('SIGKILL');
  await outage.arrive(away, LATER);
  await outage.arrive(there, LATER);
  for (const environmentId of [away, there]) await outage.expectInOrder(environmentId);
  await outage.expectEmptyQueues();
  expect(workers).toHaveLength(2);
}, 300_000);
