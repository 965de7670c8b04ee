/** Contents of commit batches that a worker takes: the first one, and each one that comes with the end of another. */
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { createLogger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import { openProducer } from '@sluice/platform/queue/queue';
import { startConsumers } from '@sluice/platform/consumers/queue-consumers';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ADD_MS_MAX } from '../support/broker-world.ts';

const WAIT = { timeout: 30_000, interval: 10 };

const brokerOf = async (kind: 'redis' | 'postgres'): Promise<BrokerOptions> => ({
  databaseUrl:
    kind === 'postgres' ? (await createTestDatabase()).url : 'postgres://127.0.0.1:1/none',
  redisUrl: kind === 'redis' ? testRedisUrl() : undefined,
  prefix: uniquePrefix(),
  shardCount: 1,
  logger: createLogger('test', 'silent'),
});

const event = (name: string, data: object) =>
  [
    1,
    7,
    1_764_000_000_000,
    'id',
    'p',
    null,
    `event ${name}`,
    name,
    data,
    1_764_000_000_000,
    's',
  ] as const;

const BATCHES = [
  { id: 'a', operations: [event('"quoted" \\ and\nbroken', { 'a "key"': null, deep: [[{}]] })] },
  { id: 'b', operations: [], flushId: 'f', places: '0' },
  { id: 'c', operations: [event('größe 😀', { amount: 0.1, text: 'unread 1' })], isReplayed: true },
  { id: 'd', operations: Array.from({ length: 2_000 }, (_, n) => event('long', { n })) },
] as unknown as readonly CommitBatch[];

// Both backends of BullMQ give a worker its next job in another way than its first, and neither as BullMQ does.
test.each(['redis', 'postgres'] as const)(
  'on %s each commit batch reaches its processor as it was added',
  async (kind) => {
    const broker = await brokerOf(kind);
    const producer = await openProducer(broker, ADD_MS_MAX);
    onTestFinished(() => producer.close());
    await producer.addCommitBatches(BATCHES.map((envelope) => ({ shard: 0, envelope })));
    const taken: CommitBatch[] = [];
    const consumers = await startConsumers(broker, {
      processCommitBatch: (commitBatch) => {
        taken.push(commitBatch);
        return Promise.resolve({ outcome: 'done' });
      },
      wakeLane: () => Promise.resolve({ outcome: 'done' }),
      laneConcurrency: 1,
      now: Date.now,
    });
    onTestFinished(() => consumers.close());
    await vi.waitFor(() => expect(taken).toHaveLength(BATCHES.length), WAIT);
    expect(taken).toEqual(BATCHES);
    await vi.waitFor(async () => expect(await producer.commitBatchCounts()).toEqual([0]), WAIT);
  },
);
