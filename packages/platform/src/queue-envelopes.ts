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
import { envelopeText, type WrittenEnvelope } from './envelope-writer.ts';
import type { AddingQueue } from './queue-adding.ts';

export interface ShardEnvelope {
  readonly shard: number;
  readonly envelope: Envelope | WrittenEnvelope;
}

/** By shard. */
export interface ShardQueues {
  readonly queues: readonly AddingQueue[];
  /** Postgres takes text. */
  readonly takesBytes: boolean;
}

type FlowEntry = ReturnType<Job['toFlowEntry']>;

const JOB_NAME = 'envelope.process';
const JOB_OPTIONS = { removeOnComplete: true };

/**
 * Adds each on its own, in one turn of the event loop, so that Redis writes its file once for all. A MULTI would cost
 * ioredis a pipeline object, 200 µs a flush.
 */
export async function addEachEnvelope(
  shards: ShardQueues,
  envelopes: readonly ShardEnvelope[],
): Promise<void> {
  await Promise.all(
    envelopes.map((each) => {
      const { jobData, jobId, parentKeyOpts } = entryOf(shards, each);
      return (shards.queues[each.shard] as AddingQueue)
        .getBackend()
        .addJob(jobData, jobId, parentKeyOpts);
    }),
  );
}

/** All or none, in the order given. Not for a Cluster, unless they are of one shard. */
export async function addEnvelopesTogether(
  shards: ShardQueues,
  envelopes: readonly ShardEnvelope[],
): Promise<void> {
  // `addFlow` is BullMQ's one way to add to several queues in one transaction; it reports a
  // refusal (out of memory, say) per entry instead of throwing it.
  const [first] = envelopes;
  if (!first) return;
  const entries = envelopes.map((each) => entryOf(shards, each));
  for (const [error] of await (shards.queues[first.shard] as AddingQueue)
    .getBackend()
    .addFlow(entries)) {
    if (error) throw error;
  }
}

/** Adds all envelopes of a shard or none, in the order given; of several shards some may be added and others not. */
export async function addEnvelopesByShard(
  shards: ShardQueues,
  envelopes: readonly ShardEnvelope[],
): Promise<void> {
  const groups = Map.groupBy(envelopes, ({ shard }) => shard);
  await Promise.all(
    [...groups.values()].map((group) =>
      group.length === 1 ? addEachEnvelope(shards, group) : addEnvelopesTogether(shards, group),
    ),
  );
}

/** What a job takes in Redis beside its envelope; 0.9 KB by `npm run bench -- memory`. */
const JOB_SIZE_BYTES = 1_024;

/** About what they take in the broker. Infinity where one is not written yet: then it takes writing it to tell. */
export const sizeBytesOf = (envelopes: readonly ShardEnvelope[]): number =>
  envelopes.reduce(
    (sum, { envelope }) =>
      sum + JOB_SIZE_BYTES + ('bytes' in envelope ? envelope.bytes.length : Infinity),
    0,
  );

/** By queue: a job as BullMQ makes it. */
const templates = new WeakMap<AddingQueue, FlowEntry>();

/**
 * Made by BullMQ once; then only what differs is set. BullMQ would serialise the envelope again, and takes 10 µs for
 * the rest.
 */
function entryOf(
  { queues, takesBytes }: ShardQueues,
  { shard, envelope }: ShardEnvelope,
): FlowEntry {
  const queue = queues[shard] as AddingQueue;
  let template = templates.get(queue);
  if (template === undefined) {
    template = new Job(queue, JOB_NAME, undefined, JOB_OPTIONS, envelope.id).toFlowEntry({});
    templates.set(queue, template);
  }
  // ioredis sends bytes as they are, and BullMQ hands them on.
  const data =
    takesBytes && 'bytes' in envelope
      ? (envelope.bytes as unknown as string)
      : envelopeText(envelope);
  const jobData = { ...template.jobData, id: envelope.id, timestamp: Date.now(), data };
  return { ...template, jobId: envelope.id, jobData };
}
