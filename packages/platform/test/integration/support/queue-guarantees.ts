/** The queue's guarantees, as tests for any broker. */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { track } from '@sluice/domain/testing/sample-operations';
import { CommitBatchBuffers, CommitBatchWriter } from '@sluice/platform/queue/commit-batch-writer';
import { openProducer } from '@sluice/platform/queue/queue';
import type { JobOutcome } from '@sluice/platform/consumers/queue-shard-job';
import { repeatIfStalled } from '@sluice/platform/testing/stall-watch';
import { TickClock } from '@sluice/platform/testing/tick-clock';
import { uniquePrefix } from '@sluice/platform/testing/testing';
import { expect, test, vi } from 'vitest';
import { ADD_MS_MAX } from './broker-world.ts';
import { DONE, useQueue, WAIT_MS } from './queue-under-test.ts';
import { testWakeUps } from './wake-up-guarantees.ts';

const commitBatch = (id: string): CommitBatch => ({ id, operations: [] });

/** Its locks last 40 s: work that is taken up by their ends is far too late. */
const LASTING = { stalledAfterMs: 60_000 };
/** A part of the second that a read may take, and of the two that a broker has to take a batch back. */
const STALL_MS = 300;

/** Called in a `describe`, with the parameters of `useQueue`. */
export function testQueue(...given: Parameters<typeof useQueue>): void {
  const queue = useQueue(...given);

  test('a shard’s commit batches run one at a time and in order on any worker', async () => {
    const order: string[] = [];
    let running = 0;
    let runningMax = 0;
    const processCommitBatch = async ({ id }: CommitBatch): Promise<JobOutcome> => {
      runningMax = Math.max(runningMax, ++running);
      order.push(id);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return DONE;
    };
    await Promise.all([
      queue.consume({ processCommitBatch }),
      queue.consume({ processCommitBatch }),
    ]);
    const ids = Array.from({ length: 40 }, (_, n) => `envelope-${n}`);
    for (const id of ids)
      await queue.producer.addCommitBatches([{ shard: 0, envelope: commitBatch(id) }]);
    await vi.waitFor(() => expect(order).toHaveLength(40), WAIT_MS);
    expect(order).toEqual(ids);
    expect(runningMax).toBe(1);
  });

  test('commit batches that wait behind another are read in order, and do not run again when applied with it', async () => {
    const runAll = async (): Promise<string[]> => {
      for (const id of 'abcdefghijkl')
        await queue.producer.addCommitBatches([
          { shard: 0, envelope: commitBatch(`envelope-${id}`) },
        ]);
      const seen: string[] = [];
      const consumers = await queue.consume({
        // A shard counts as busy while hardly any time has passed since its last commit batch.
        now: () => 1_800_000_000_000,
        async processCommitBatch({ id }, readBehind) {
          const behind = await readBehind();
          seen.push([id, ...behind.map((each) => each.id)].join(' ').replaceAll('envelope-', ''));
          return { outcome: 'done', behind: Math.min(behind.length, 3) };
        },
      });
      await vi.waitFor(
        async () => expect(await queue.producer.commitBatchCounts()).toEqual([0, 0]),
        WAIT_MS,
      );
      await consumers.close();
      return seen;
    };
    // The first is alone: there is no sign yet that the shard is behind. Then more and more are read. A read for which the
    // broker takes a second is left out.
    await repeatIfStalled(
      STALL_MS,
      async () => expect(await runAll()).toEqual(['a', 'b c d e f', 'f g h i j k l', 'j k l']),
      () => queue.producer.commitBatchCounts(),
    );
  });

  test('a commit batch that cannot be applied yet is tried again before any later one', async () => {
    const order: string[] = [];
    let failuresLeft = 2;
    for (const id of ['envelope-a', 'envelope-b']) {
      await queue.producer.addCommitBatches([{ shard: 0, envelope: commitBatch(id) }]);
    }
    await queue.consume({
      processCommitBatch: ({ id }) => {
        order.push(id);
        if (id === 'envelope-a' && failuresLeft-- > 0) {
          return failuresLeft === 1
            ? Promise.resolve({ outcome: 'retry', afterMs: 1, reason: 'away' })
            : Promise.reject(new Error('a lost connection'));
        }
        return Promise.resolve(DONE);
      },
    });
    await vi.waitFor(() => expect(order).toContain('envelope-b'), WAIT_MS);
    expect(order).toEqual(['envelope-a', 'envelope-a', 'envelope-a', 'envelope-b']);
  });

  test('a commit batch whose worker closed between attempts keeps its place at the head', async () => {
    const expectPlaceKept = async (tries: number): Promise<void> => {
      const more = { ...LASTING, prefix: uniquePrefix(), shardCount: tries };
      // On Postgres all tries have one queue for each shard.
      const shard = tries - 1;
      const adding = await openProducer({ ...queue.options, ...more }, ADD_MS_MAX);
      const ids = ['envelope-a', 'envelope-b'].map((name) => `${name} of ${tries}`);
      for (const id of ids) await adding.addCommitBatches([{ shard, envelope: commitBatch(id) }]);
      await adding.close();
      let attempts = 0;
      const first = await queue.consume(
        {
          processCommitBatch: ({ id }) => {
            if (id === ids[0]) attempts++;
            return Promise.resolve({ outcome: 'retry', afterMs: 60_000, reason: 'away' });
          },
        },
        more,
      );
      await vi.waitFor(() => expect(attempts).toBe(1), WAIT_MS);
      await first.close();
      const order: string[] = [];
      const next = await queue.consume(
        {
          processCommitBatch: ({ id }) => {
            if (ids.includes(id)) order.push(id);
            return Promise.resolve(DONE);
          },
        },
        more,
      );
      try {
        await vi.waitFor(() => expect(order).toEqual(ids), WAIT_MS);
      } finally {
        await next.close();
      }
    };
    // A batch that the broker did not take back in time waits for the end of its lock.
    await repeatIfStalled(STALL_MS, expectPlaceKept, () => queue.producer.commitBatchCounts());
  });

  // BullMQ takes a connection for good while a worker starts; a stop in that moment did not give it back.
  test('a worker that is stopped while it starts ends at once and leaves no connection behind', async () => {
    for (let round = 0; round < 12; round++) {
      const consumers = await queue.consume({});
      let isClosed = false;
      const closed = consumers.close().then(() => (isClosed = true));
      // It would give up waiting after three seconds. A standstill of the broker is one tick, as the look waits for it.
      await TickClock.pass(50, 2_000, async () => {
        await queue.producer.commitBatchCounts();
        return isClosed;
      });
      expect(isClosed).toBe(true);
      await closed;
    }
  });

  test('a commit batch added again while it waits runs once', async () => {
    const both = [0, 1].map((shard) => ({ shard, envelope: commitBatch(`envelope-${shard}`) }));
    await queue.producer.addCommitBatches(both);
    await queue.producer.addCommitBatches(both);
    expect(await queue.producer.commitBatchCounts()).toEqual([1, 1]);
  });

  test('unapplied batches are listed, even in progress, and the queue heads change with each applied batch', async () => {
    const ids = ['envelope-a', 'envelope-b', 'envelope-c'];
    await queue.producer.addCommitBatches(
      ids.map((id, index) => ({ shard: index === 2 ? 1 : 0, envelope: commitBatch(id) })),
    );
    const asked = [
      { shard: 0, id: 'envelope-a' },
      { shard: 0, id: 'envelope-b' },
      { shard: 1, id: 'envelope-c' },
      { shard: 1, id: 'envelope-unknown' },
    ];
    expect(await queue.producer.listQueued(asked)).toEqual(new Set(ids));
    const before = JSON.stringify(await queue.producer.shardHeads());
    expect(JSON.stringify(await queue.producer.shardHeads())).toBe(before);
    let letGo = () => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await queue.consume({
      processCommitBatch: async ({ id }) => {
        if (id === 'envelope-b') await held;
        return DONE;
      },
    });
    await vi.waitFor(
      async () => expect(await queue.producer.listQueued(asked)).toEqual(new Set(['envelope-b'])),
      WAIT_MS,
    );
    expect(JSON.stringify(await queue.producer.shardHeads())).not.toBe(before);
    letGo();
    await vi.waitFor(
      async () => expect(await queue.producer.listQueued(asked)).toEqual(new Set()),
      WAIT_MS,
    );
  });

  test('a commit batch reaches the worker as intake wrote it, alone and with others', async () => {
    const operations = [
      track('id:a', 'Zahlung über 5 €'),
      track(null, '"\\u2028\\\\😀', { data: { a: [1] } }),
    ];
    const written = (id: string, shard: number) => {
      const writer = new CommitBatchWriter(id, new CommitBatchBuffers());
      for (const operation of operations) writer.add(JSON.stringify(operation));
      return { shard, envelope: writer.finish('00-a-b-01') };
    };
    const taken: CommitBatch[] = [];
    await queue.producer.addCommitBatches([written('envelope-a', 0)]);
    await queue.producer.addCommitBatches([written('envelope-b', 0), written('envelope-c', 1)]);
    await queue.producer.addCommitBatches([written('envelope-d', 0), written('envelope-e', 1)]);
    await queue.consume({
      processCommitBatch: (one) => {
        taken.push(one);
        return Promise.resolve(DONE);
      },
    });
    await vi.waitFor(() => expect(taken).toHaveLength(5), WAIT_MS);
    expect(taken.toSorted((one, other) => one.id.localeCompare(other.id))).toEqual(
      ['a', 'b', 'c', 'd', 'e'].map((name) => ({
        id: `envelope-${name}`,
        operations,
        traceparent: '00-a-b-01',
      })),
    );
  });

  testWakeUps(queue);

  test('durability is read from the broker itself', async () => {
    const durability = await queue.producer.durability();
    // The tests' Postgres runs without fsync, their Redis with `appendfsync always`.
    expect(durability.isSafe).toBe(queue.brokerUrl !== undefined);
    expect(durability.isSaidUnsafe).toBe(queue.brokerUrl === undefined);
  });
}
