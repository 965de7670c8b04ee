/**
 * Work moves when a worker joins, leaves, dies or hangs: the standstill of the slowest shard. Printed, because an
 * operator needs the figure for `QUEUE_STALLED_AFTER_MS`.
 */
import { fileURLToPath } from 'node:url';
import { seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { connectProducer } from '@sluice/platform/redis/redis';
import { startBystander } from '@sluice/platform/testing/bystander';
import { StandstillClock } from '@sluice/platform/testing/standstill-clock';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const STALLED_AFTER_MS = 2_000;
/** Beside the lateness of the machine itself: some steps of a move are a few looks long. */
const MARGIN_MS = 2_000;
/** Of a machine that others use too, everything takes longer, and a move has so many steps. */
const STEPS_MAX = 10;
const SHARD_COUNT = 4;
const WAIT = { timeout: 60_000, interval: 20 };

const commitBatchOf = (id: string, shard: number): CommitBatch => ({
  id,
  operations: [
    {
      type: 'event.track',
      kind: 'event',
      environmentId: 1,
      receivedAtMs: 1_700_000_000_000,
      person: { kind: 'id', value: `person-${shard}` },
      eventId: id,
      name: 'moved',
      data: {},
      occurredAtMs: 1_700_000_000_000,
    },
  ],
});

test.each(['redis', 'postgres'] as const)(
  'on %s no shard stands longer than the stall time when a worker joins, leaves, dies, hangs or wakes',
  async (kind) => {
    const { database, url } = await createTestDatabase();
    await seedDemoWorkspace(database);
    const broker = {
      redisUrl: kind === 'redis' ? testRedisUrl() : undefined,
      prefix: uniquePrefix(),
      shardCount: SHARD_COUNT,
    };
    const producer: Producer = await openProducer({
      ...broker,
      databaseUrl: url,
      logger: createLogger('test', 'silent'),
    });
    // No statement of the product's and of this test is on them, so no lock holds them up.
    const { database: aside } = await createTestDatabase();
    const redis = await connectProducer(testRedisUrl(), 60_000);
    const bystander = await startBystander(process.execPath);
    onTestFinished(() => {
      redis.disconnect();
      bystander.end();
    });
    const start = (): Promise<ServiceUnderTest> =>
      startServiceUnderTest(MAIN, {
        DATABASE_URL: url,
        ...(broker.redisUrl !== undefined && { REDIS_URL: broker.redisUrl }),
        QUEUE_PREFIX: broker.prefix,
        SHARD_COUNT: String(SHARD_COUNT),
        QUEUE_STALLED_AFTER_MS: String(STALLED_AFTER_MS),
        WORKER_PORT: '0',
      });

    let round = 0;
    const addEverywhere = async (): Promise<string[]> => {
      round++;
      const commitBatches = Array.from({ length: SHARD_COUNT }, (_, shard) => ({
        shard,
        envelope: commitBatchOf(`move-${round}-${shard}`, shard),
      }));
      await producer.addCommitBatches(commitBatches);
      return commitBatches.map(({ envelope: commitBatch }) => commitBatch.id);
    };
    const untilApplied = (ids: readonly string[]) =>
      vi.waitFor(async () => {
        const { rows } = await sql<{ id: string }>`
          select event_id as id from event_ids
           where environment_id = 1 and event_id = any (${ids})`.execute(database);
        expect(rows).toHaveLength(ids.length);
      }, WAIT);
    /**
     * Longest time in which a shard applied no part of its work, from the event until all is done.
     *
     * Without standstills of the machine, which stop the bystander, a server or this test. By the clock on the wall, all
     * is done within the time of `WAIT`.
     */
    const standstillMs = async (disturb: () => Promise<unknown>): Promise<number> => {
      for (let n = 0; n < 20; n++) await addEverywhere();
      await disturb();
      await addEverywhere();
      const clock = new StandstillClock(() =>
        Promise.all([bystander.ask(), sql`select 1`.execute(aside), redis.ping()]),
      );
      const movedAtMs = Array.from({ length: SHARD_COUNT }, () => 0);
      const applied = Array.from({ length: SHARD_COUNT }, () => 0);
      let longestMs = 0;
      try {
        await vi.waitFor(async () => {
          const { rows } = await sql<{ shard: number; count: number }>`
          select split_part(event_id, '-', 3)::int as shard, count(*)::int as count
            from event_ids where environment_id = 1 group by 1`.execute(database);
          const { nowMs } = clock;
          for (const { shard, count } of rows) {
            if (applied[shard] === round) continue;
            longestMs = Math.max(longestMs, nowMs - (movedAtMs[shard] ?? nowMs));
            if (applied[shard] === count) continue;
            applied[shard] = count;
            movedAtMs[shard] = nowMs;
          }
          expect(applied).toEqual(applied.map(() => round));
        }, WAIT);
      } finally {
        await clock.stop();
      }
      return longestMs;
    };

    const first = await start();
    await untilApplied(await addEverywhere());
    const figures: Record<string, number> = {};
    const undisturbed = () => standstillMs(() => Promise.resolve());
    const calmBeforeMs = await undisturbed();
    const second = await start();
    figures['one joins'] = await undisturbed();
    figures['one leaves (SIGTERM)'] = await standstillMs(async () => void first.kill('SIGTERM'));
    const third = await start();
    figures['one dies (SIGKILL)'] = await standstillMs(async () => void second.kill('SIGKILL'));
    const fourth = await start();
    figures['one hangs (SIGSTOP)'] = await standstillMs(() => {
      process.kill(third.pid, 'SIGSTOP');
      return Promise.resolve();
    });
    // Another one has applied its work in progress; it notices that and repeats no work.
    process.kill(third.pid, 'SIGCONT');
    figures['it wakes'] = await undisturbed();
    const calmMs = Math.max(calmBeforeMs, await undisturbed());

    // oxlint-disable-next-line no-console -- the figures are what this is for
    console.log(
      [
        `${kind}, stall time ${STALLED_AFTER_MS} ms: the slowest of ${SHARD_COUNT} shards stood`,
        `  while nothing happens: ${Math.round(calmMs)} ms`,
        ...Object.entries(figures).map(([name, ms]) => `  ${name}: ${Math.round(ms)} ms`),
      ].join('\n'),
    );
    const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from events where environment_id = 1 and kind = 'event'`.execute(
      database,
    );
    expect(rows[0]?.count).toBe(round * SHARD_COUNT);
    for (const ms of Object.values(figures))
      expect(ms).toBeLessThan(STALLED_AFTER_MS + MARGIN_MS + STEPS_MAX * calmMs);
    await Promise.all([third, fourth].map((worker) => worker.kill('SIGKILL')));
    await producer.close();
  },
  300_000,
);
