/**
 * Operations in the form of intake's parser, and queued commit batches. Events are packed, as by intake's fast
 * path.
 */
import type { JsonObject } from '@sluice/domain/values/json';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation, TrackEvent } from '@sluice/domain/operations/operation';
import {
  PACKED_EVENT_FORMAT,
  unpackOperation,
  type PackedEvent,
} from '@sluice/domain/operations/packed-event';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import type { Producer } from '@sluice/platform/queue/queue';
import type { Redis } from 'ioredis';

export const ENVIRONMENT_ID = 1;
export const EVENT_DATA = {
  plan: 'pro',
  amount: 42.5,
  currency: 'EUR',
  items: ['sku-1', 'sku-2'],
};

export const newId = createIdGenerator(Date.now);

/** The event of the intake benchmark. */
export function trackEvent(personId: string, data: JsonObject = EVENT_DATA): TrackEvent {
  const nowMs = Date.now();
  return {
    type: 'event.track',
    kind: 'event',
    environmentId: ENVIRONMENT_ID,
    receivedAtMs: nowMs,
    person: { kind: 'id', value: personId },
    eventId: newId(),
    name: 'Order Placed',
    data,
    // A fixed one becomes older than 72 hours, and then no webhook gets the event.
    occurredAtMs: nowMs,
    source: 'pipelines.track',
  };
}

function packed(event: TrackEvent): PackedEvent {
  const { environmentId, receivedAtMs, person, eventId, name, data, occurredAtMs } = event;
  return [
    ...([
      PACKED_EVENT_FORMAT,
      environmentId,
      receivedAtMs,
      'id',
      person?.value ?? '',
      null,
    ] as const),
    ...([eventId, name, data, occurredAtMs, event.source ?? ''] as const),
  ];
}

export interface QueuedOperations {
  readonly shardCount: number;
  readonly operationsPerCommitBatch: number;
}

export interface QueuedEvents extends QueuedOperations {
  readonly count: number;
  /** They are spread over so many. */
  readonly personCount: number;
  /** Data of each event. Without it all have the same. */
  readonly dataOf?: () => JsonObject;
}

/** Commit batches that go to the broker in one call. */
const COMMIT_BATCHES_A_CALL = 100;

/** As intake does under load: full commit batches, a shard's in order. @returns how many. */
export async function addOperations(
  producer: Producer,
  operations: Iterable<Operation>,
  { shardCount, operationsPerCommitBatch }: QueuedOperations,
): Promise<number> {
  const shards: (Operation | PackedEvent)[][] = Array.from({ length: shardCount }, () => []);
  const waiting: Parameters<Producer['addCommitBatches']>[0][number][] = [];
  let commitBatchCount = 0;
  const send = async (least: number) => {
    if (waiting.length < least) return;
    commitBatchCount += waiting.length;
    await producer.addCommitBatches(waiting.splice(0));
  };
  const take = async (shard: number, least: number) => {
    const queued = shards[shard] as (Operation | PackedEvent)[];
    while (queued.length >= least) {
      const part = queued.splice(0, operationsPerCommitBatch);
      waiting.push({ shard, envelope: { id: newId(), operations: part } });
      // Commit batches of a thousand operations are a megabyte each.
      await send(Math.ceil(COMMIT_BATCHES_A_CALL / operationsPerCommitBatch));
    }
  };
  for (const operation of operations) {
    const shard = shardOf(ENVIRONMENT_ID, shardKeyOf(operation), shardCount);
    (shards[shard] as (Operation | PackedEvent)[]).push(
      operation.type === 'event.track' ? packed(operation) : operation,
    );
    await take(shard, operationsPerCommitBatch);
  }
  for (const shard of shards.keys()) await take(shard, 1);
  await send(1);
  return commitBatchCount;
}

/** @returns how many commit batches. */
export const addEvents = (
  producer: Producer,
  { count, personCount, dataOf, ...options }: QueuedEvents,
): Promise<number> => addOperations(producer, events(count, personCount, dataOf), options);

function* events(
  count: number,
  personCount: number,
  dataOf?: () => JsonObject,
): Generator<TrackEvent> {
  for (let index = 0; index < count; index++)
    yield trackEvent(`user-${index % personCount}`, dataOf?.());
}

/** Events of that name in the queues of a Redis. */
export async function countQueued(redis: Redis, name: string): Promise<number> {
  let count = 0;
  for (const key of await redis.keys('*events-*:*')) {
    const data = (await redis.type(key)) === 'hash' ? await redis.hget(key, 'data') : null;
    if (data === null) continue;
    const operations = (JSON.parse(data) as CommitBatch).operations.map(unpackOperation);
    count += operations.filter(
      (each) =>
        (each.type === 'event.track' && each.name === name) ||
        (each.type === 'message.publish' && each.eventType === name),
    ).length;
  }
  return count;
}

/** So many keys are looked at, and removed, by one command. */
const KEYS_A_COMMAND = 5_000;
/** The intakes that Redis knows, their leases, and whether new flushes may be added: `staged-on-redis.ts`. */
const LEASES = /:(intakes|clear(:[^:]+)?)$/;

/**
 * Removes all queued work. `FLUSHALL` removes the intakes too, and until its next report, for up to ten seconds, an intake
 * that Redis does not know writes its calls to the disk.
 */
export async function emptyQueues(redis: Redis): Promise<void> {
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'COUNT', KEYS_A_COMMAND);
    const removed = keys.filter((key) => !LEASES.test(key));
    if (removed.length > 0) await redis.unlink(removed);
    cursor = next;
  } while (cursor !== '0');
}
