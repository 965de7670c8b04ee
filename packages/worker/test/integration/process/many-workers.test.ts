/**
 * Sixteen workers in four processes share two shards.
 *
 * Processes are killed, stopped, halted and started meanwhile. Each person's calls are applied once and in the order in
 * which they were sent.
 */
import { fileURLToPath } from 'node:url';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, track } from '@sluice/domain/testing/sample-operations';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { afterEach, expect, test, vi } from 'vitest';

const MAIN = fileURLToPath(new URL('../support/consumers-process.ts', import.meta.url));
const PROCESSES = 4;
const WORKERS_PER_PROCESS = 4;
const SHARD_COUNT = 2;
const PEOPLE = ['ann', 'ben', 'cem', 'dee', 'eva', 'fay'];
const CALLS_PER_PERSON = 25;
const WAIT = { timeout: 80_000, interval: 20 };

const running = new Set<ServiceUnderTest>();
afterEach(async () => {
  for (const { pid } of running) process.kill(pid, 'SIGCONT');
  await Promise.all([...running].map((service) => service.kill('SIGKILL')));
  running.clear();
});

test.each(['postgres', 'redis'] as const)(
  'one person’s calls are applied in order under sixteen workers that come and go, on %s',
  { timeout: 400_000 },
  async (kind) => {
    const { database, url } = await createTestDatabase();
    const prefix = uniquePrefix();
    const redisUrl = kind === 'redis' ? testRedisUrl() : undefined;
    const settings = {
      DATABASE_URL: url,
      ...(redisUrl ? { REDIS_URL: redisUrl } : {}),
      QUEUE_PREFIX: prefix,
      SHARD_COUNT: String(SHARD_COUNT),
      WORKERS: String(WORKERS_PER_PROCESS),
    };
    const start = async (): Promise<ServiceUnderTest> => {
      const started = await startServiceUnderTest(MAIN, settings);
      running.add(started);
      return started;
    };
    const everStarted = await Promise.all(Array.from({ length: PROCESSES }, start));

    const producer = await openProducer({
      databaseUrl: url,
      redisUrl,
      prefix,
      shardCount: SHARD_COUNT,
      logger: createLogger('test', 'silent'),
    });
    const killedIsGone = Promise.withResolvers<void>();
    const send = async (person: string): Promise<void> => {
      for (let step = 0; step < CALLS_PER_PERSON; step++) {
        // Otherwise one process may have applied everything before it is killed.
        if (step === Math.floor(CALLS_PER_PERSON / 2)) await killedIsGone.promise;
        const eventId = `${person}-${step}`;
        const operations: Operation[] = [
          identify(`id:${person}`, { step }),
          track(`id:${person}`, 'stepped', { eventId }),
        ];
        const [{ environmentId } = { environmentId: 1 }] = operations;
        const shard = shardOf(environmentId, shardKeyOf(operations[0] as Operation), SHARD_COUNT);
        await producer.addCommitBatches([{ shard, envelope: { id: eventId, operations } }]);
      }
    };
    const sending = Promise.all(PEOPLE.map(send));

    const countApplied = async (): Promise<number> => {
      const { rows } = await sql<{ count: number }>`
        select count(*)::int as count from envelopes`.execute(database);
      return rows[0]?.count ?? 0;
    };
    const total = PEOPLE.length * CALLS_PER_PERSON;
    const untilApplied = (part: number) =>
      vi.waitFor(
        async () => expect(await countApplied()).toBeGreaterThanOrEqual(total * part),
        WAIT,
      );
    /** The worker that has taken the most: it has a shard in progress. */
    const busiest = (): ServiceUnderTest =>
      [...running].toSorted((one, other) => taken(other) - taken(one))[0] as ServiceUnderTest;
    const replace = async (leaving: ServiceUnderTest): Promise<void> => {
      running.delete(leaving);
      await leaving.ended;
      everStarted.push(await start());
    };

    await untilApplied(0.1);
    // The lines come through pipes.
    await vi.waitFor(() => expect(taken(busiest())).toBeGreaterThan(0), WAIT);
    const killed = busiest();
    await killed.kill('SIGKILL');
    killedIsGone.resolve();
    await replace(killed);
    await untilApplied(0.35);
    const halted = busiest();
    process.kill(halted.pid, 'SIGSTOP');
    // The others go on without it, unless it holds a transaction open that they wait for.
    const applied = await countApplied();
    await vi
      .waitFor(async () => expect(await countApplied()).toBeGreaterThan(applied + 15), {
        timeout: 4_000,
        interval: 20,
      })
      .catch(() => undefined);
    process.kill(halted.pid, 'SIGCONT');
    await untilApplied(0.65);
    const stopped = busiest();
    expect(await stopped.kill('SIGTERM')).toBe(0);
    await replace(stopped);
    await sending;
    await untilApplied(1);
    await producer.close();

    const { rows: events } = await sql<{ person: string; ids: string[] }>`
      select people.id as person, array_agg(events.event_id order by event_ids.envelope_number) as ids
        from events
        join people using (environment_id, person_id)
        join event_ids using (environment_id, event_id)
       where events.kind = 'event'
       group by 1 order by 1`.execute(database);
    const inOrder = (person: string) =>
      Array.from({ length: CALLS_PER_PERSON }, (_, step) => `${person}-${step}`);
    expect(events).toEqual(PEOPLE.map((person) => ({ person, ids: inOrder(person) })));
    const { rows: steps } = await sql<{ step: number }>`
      select (attributes ->> 'step')::int as step from people`.execute(database);
    expect(steps).toEqual(PEOPLE.map(() => ({ step: CALLS_PER_PERSON - 1 })));
    // Otherwise no process had to take over. One may have done all the work of the killed one.
    await vi.waitFor(() => {
      const working = everStarted.filter((service) => taken(service) > 0);
      expect(working.length).toBeGreaterThanOrEqual(2);
    }, WAIT);
  },
);

const taken = ({ logs }: ServiceUnderTest): number => logs.filter((line) => line['took']).length;
