/** Events as intake's parser leaves them, and commit batches of them on the queues, as its fast path packs them. */
import type { JsonObject } from '@sluice/domain/values/json';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { TrackEvent } from '@sluice/domain/operations/operation';
import {
  PACKED_EVENT_FORMAT,
  unpackOperation,
  type PackedEvent,
} from '@sluice/domain/operations/packed-event';
import { shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import type { Producer } from '@sluice/platform/queue/queue';
import type { Redis } from 'ioredis';

const ENVIRONMENT_ID = 1;
export const EVENT_DATA = {
  plan: 'pro',
  amount: 42.5,
  currency: 'EUR',
  items: ['sku-1', 'sku-2'],
};

export const newId = createIdGenerator(Date.now);

/** The event of the intake benchmark. */
export function trackEvent(personId: string, data: JsonObject = EVENT_DATA): TrackEvent {
  return {
    type: 'event.track',
    kind: 'event',
    environmentId: ENVIRONMENT_ID,
    receivedAtMs: Date.now(),
    person: { kind: 'id', value: personId },
    eventId: newId(),
    name: 'Order Placed',
    data,
    occurredAtMs: Date.UTC(2026, 10, 20, 10),
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

export interface QueuedEvents {
  readonly count: number;
  /** They are spread over so many. */
  readonly personCount: number;
  readonly shardCount: number;
  readonly operationsPerCommitBatch: number;
  /** Of each event; absent: the same of all. */
  readonly dataOf?: () => JsonObject;
}

/** Commit batches that go to the broker in one call. */
const COMMIT_BATCHES_A_CALL = 100;

/** As intake does under load: full commit batches, a shard's in order. @returns how many. */
export async function addEvents(
  producer: Producer,
  { count, personCount, shardCount, operationsPerCommitBatch, dataOf }: QueuedEvents,
): Promise<number> {
  const shards: PackedEvent[][] = Array.from({ length: shardCount }, () => []);
  const waiting: Parameters<Producer['addCommitBatches']>[0][number][] = [];
  let commitBatchCount = 0;
  const send = async (least: number) => {
    if (waiting.length < least) return;
    commitBatchCount += waiting.length;
    await producer.addCommitBatches(waiting.splice(0));
  };
  const take = async (shard: number, least: number) => {
    const operations = shards[shard] as PackedEvent[];
    while (operations.length >= least) {
      const part = operations.splice(0, operationsPerCommitBatch);
      waiting.push({ shard, envelope: { id: newId(), operations: part } });
      // Those of a thousand operations are a megabyte each.
      await send(Math.ceil(COMMIT_BATCHES_A_CALL / operationsPerCommitBatch));
    }
  };
  for (let index = 0; index < count; index++) {
    const event = trackEvent(`user-${index % personCount}`, dataOf?.());
    const shard = shardOf(ENVIRONMENT_ID, shardKeyOf(event), shardCount);
    (shards[shard] as PackedEvent[]).push(packed(event));
    await take(shard, operationsPerCommitBatch);
  }
  for (const shard of shards.keys()) await take(shard, 1);
  await send(1);
  return commitBatchCount;
}

/** Events of that name in the queues of a Redis. */
export async function countQueued(redis: Redis, name: string): Promise<number> {
  let count = 0;
  for (const key of await redis.keys('*events-*:*')) {
    const data = (await redis.type(key)) === 'hash' ? await redis.hget(key, 'data') : null;
    if (data === null) continue;
    const operations = (JSON.parse(data) as CommitBatch).operations.map(unpackOperation);
    count += operations.filter((each) => each.type === 'event.track' && each.name === name).length;
  }
  return count;
}
