/**
 * Calls in a broker's queues and log, processed by hand.
 *
 * A test chooses the order of the batches. On top of `commit-batch-world.ts`.
 */
import { writePlaces } from '@sluice/domain/operations/flush-places';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { identify, track } from '@sluice/domain/testing/sample-operations';
import { PendingBatches } from '@sluice/platform/consumers/pending-batches';
import { openTakingSide } from '@sluice/platform/consumers/queue-taking';
import { createLogger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import type { PendingLog } from '@sluice/platform/queue/pending-log';
import { migrateQueues, openProducer, shardQueueName } from '@sluice/platform/queue/queue';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import {
  processCommitBatch,
  type ProcessCommitBatchDeps,
} from '../../../src/events/process-commit-batch.ts';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from './commit-batch-world.ts';

const SHARD_COUNT = 16;
/** Longer than the stalls of a busy machine: these batches are added once. */
const ADD_TIMEOUT_MS = 60_000;

export interface ShardsWorld extends CommitBatchWorld {
  readonly brokerOptions: BrokerOptions;
  /** Adds calls, one after another. @returns their batches, in the order in which they were added. */
  add(calls: readonly (readonly Operation[])[]): Promise<CommitBatch[]>;
  /**
   * Makes two people, `s` with the email `s@x.y` and `p`, and adds calls that name them by any of these.
   *
   * @returns the batches of the calls, in the order in which they were added.
   */
  addAboutOne(
    environmentId: number,
    ...calls: readonly (readonly Operation[])[]
  ): Promise<CommitBatch[]>;
  /** Another process's view of the log. @param log - in place of the broker's own. */
  newPending(log?: Partial<PendingLog>): PendingBatches;
  /** As a worker does: once more if batches of other shards came first. */
  processToEnd(
    batch: CommitBatch,
    pending: PendingBatches,
    by?: ProcessCommitBatchDeps,
  ): Promise<void>;
  /** Adds batches once more, as an intake does that has got no answer. */
  addAgain(batches: readonly CommitBatch[]): Promise<void>;
  /** Takes batches out of their queues; the log keeps them. */
  takeFromQueues(batches: readonly CommitBatch[]): Promise<void>;
  /** People and events, as texts. */
  stateOf(environmentId: number): Promise<unknown>;
  close(): Promise<void>;
}

export async function createShardsWorld(broker: 'redis' | 'postgres'): Promise<ShardsWorld> {
  const world = await createCommitBatchWorld();
  const brokerOptions = {
    databaseUrl: world.databaseUrl,
    redisUrl: broker === 'redis' ? testRedisUrl() : undefined,
    prefix: uniquePrefix(),
    shardCount: SHARD_COUNT,
    logger: createLogger('test', 'silent'),
  };
  if (broker === 'postgres') await migrateQueues(brokerOptions.databaseUrl);
  const producer = await openProducer(brokerOptions, ADD_TIMEOUT_MS);
  const side = openTakingSide(brokerOptions, 0, () => undefined);
  const add: ShardsWorld['add'] = async (calls) => {
    const added: CommitBatch[] = [];
    for (const operations of calls) {
      const parts = partsOf(operations, world.newId);
      await producer.addCommitBatches(parts);
      added.push(...parts.map(({ envelope }) => envelope));
    }
    return added;
  };
  return {
    ...world,
    brokerOptions,
    add,
    async addAboutOne(environmentId, ...calls) {
      await world.process(
        inEnvironment(environmentId, identify('id:s', { email: 's@x.y' }), identify('id:p')),
      );
      return add(calls.map((operations) => inEnvironment(environmentId, ...operations)));
    },
    newPending: (log) =>
      new PendingBatches({ ...side.pendingLog, ...log }, side.readBatches, () => performance.now()),
    async processToEnd(batch, pending, by = world.deps) {
      while ((await processCommitBatch(by, batch, [], pending)).outcome === 'waiting');
    },
    addAgain: (batches) =>
      producer.addCommitBatches(
        batches.map((envelope) => ({ shard: shardOfBatch(envelope), envelope })),
      ),
    async takeFromQueues(batches) {
      for (const batch of batches)
        await side.waitingIn(shardQueueName(shardOfBatch(batch))).remove([batch.id]);
    },
    async stateOf(environmentId) {
      const people = await world.rowsOf(
        'people',
        environmentId,
        'id, email, attributes, unsubscribed',
      );
      const { rows: events } = await sql<{ name: string | null }>`
        select e.name, p.id, p.email
          from events e left join people p using (environment_id, person_id)
         where environment_id = ${environmentId}`.execute(world.database);
      const texts = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).toSorted();
      return { people: texts(people), events: texts(events.filter(({ name }) => name !== null)) };
    },
    async close() {
      await producer.close();
      side.leave();
      await side.close();
    },
  };
}

const shardOfOperation = (operation: Operation): number =>
  shardOf(operation.environmentId, shardKeyOf(operation), SHARD_COUNT);

export const shardOfBatch = ({ operations: [first] }: CommitBatch): number =>
  shardOfOperation(first as Operation);

/** The shard of the calls that name a person so, as `id:p`. */
export const shardOfCalls = (environmentId: number, who: string): number =>
  shardOfBatch({ id: '', operations: inEnvironment(environmentId, track(who, '')) });

/** An event of {@link ShardsWorld.addAboutOne}, as `stateOf` has it. @param id - of its person. */
export const eventOfOne = (name: string, id: string): string =>
  JSON.stringify({ name, id, email: 's@x.y' });

/** As of intake. */
const PART_OPERATIONS_MAX = 1_000;

/** One call as intake writes it: a batch for each shard, or more, with the places where there are several. */
function partsOf(
  operations: readonly Operation[],
  newId: () => string,
): { shard: number; envelope: CommitBatch }[] {
  const placed = operations.map((operation, place) => ({ operation, place }));
  const shards = Map.groupBy(placed, ({ operation }) => shardOfOperation(operation));
  const parts = [...shards].flatMap(([shard, all]) =>
    Array.from({ length: Math.ceil(all.length / PART_OPERATIONS_MAX) }, (_, index) => ({
      shard,
      part: all.slice(index * PART_OPERATIONS_MAX, (index + 1) * PART_OPERATIONS_MAX),
    })),
  );
  const flushId = newId();
  return parts.map(({ shard, part }) => ({
    shard,
    envelope: {
      id: newId(),
      operations: part.map(({ operation }) => operation),
      ...(parts.length > 1 && { flushId, places: writePlaces(part.map(({ place }) => place)) }),
    },
  }));
}
