/**
 * Envelopes as jobs of their shards' queues: how several get there together.
 *
 * | broker | those of one shard | those of several shards |
 * |---|---|---|
 * | Postgres | one SQL transaction | the same one |
 * | Redis | one MULTI | the same one |
 * | Redis Cluster | one MULTI | one a shard: their nodes have no common transaction |
 *
 * Beside `queue.ts`, which opens the queues.
 */
import type { Envelope } from '@sluice/domain/operation';
import { Job } from 'bullmq';
import type { AddingQueue } from './queue-adding.ts';

export interface ShardEnvelope {
  readonly shard: number;
  readonly envelope: Envelope;
}

const JOB_NAME = 'envelope.process';
const JOB_OPTIONS = { removeOnComplete: true };

/** Each on its own, in one turn: a Redis writes its file once for all of them. A MULTI would cost ioredis a pipeline object, 200 µs a flush. */
export async function addEachEnvelope(
  shards: readonly AddingQueue[],
  envelopes: readonly ShardEnvelope[],
): Promise<void> {
  await Promise.all(
    envelopes.map(({ shard, envelope }) =>
      (shards[shard] as AddingQueue).add(JOB_NAME, envelope, {
        ...JOB_OPTIONS,
        jobId: envelope.id,
      }),
    ),
  );
}

/** All or none, in the order given. Not for a Cluster, unless they are of one shard. */
export async function addEnvelopesTogether(
  shards: readonly AddingQueue[],
  envelopes: readonly ShardEnvelope[],
): Promise<void> {
  const entries = envelopes.map(({ shard, envelope }) =>
    new Job(shards[shard] as AddingQueue, JOB_NAME, envelope, JOB_OPTIONS, envelope.id).toFlowEntry(
      {},
    ),
  );
  // `addFlow` is BullMQ's one way to add to several queues in one transaction; it reports a
  // refusal (out of memory, say) per entry instead of throwing it.
  const [first] = envelopes;
  if (!first) return;
  for (const [error] of await (shards[first.shard] as AddingQueue).getBackend().addFlow(entries)) {
    if (error) throw error;
  }
}

/** Those of each shard all or none and in the order given; of several shards some may be added and others not. */
export async function addEnvelopesByShard(
  shards: readonly AddingQueue[],
  envelopes: readonly ShardEnvelope[],
): Promise<void> {
  const groups = Map.groupBy(envelopes, ({ shard }) => shard);
  await Promise.all(
    [...groups.values()].map((group) =>
      group.length === 1 ? addEachEnvelope(shards, group) : addEnvelopesTogether(shards, group),
    ),
  );
}
