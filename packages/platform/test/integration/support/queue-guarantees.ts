/** The queue's guarantees, as tests for any broker. */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { track } from '@sluice/domain/testing/sample-operations';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { CommitBatchBuffers, CommitBatchWriter } from '@sluice/platform/queue/commit-batch-writer';
import { createLogger } from '@sluice/platform/process/logger';
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import {
  startConsumers,
  type ConsumerOptions,
  type Consumers,
} from '@sluice/platform/consumers/queue-consumers';
import type { Processors } from '@sluice/platform/consumers/queue-processors';
import type { JobOutcome } from '@sluice/platform/consumers/queue-shard-job';
import { rangeOf, type LaneRange } from '@sluice/domain/wake-ups/lane-ranges';
import { repeatIfStalled } from '@sluice/platform/testing/stall-watch';
import { TickClock } from '@sluice/platform/testing/tick-clock';
import { uniquePrefix } from '@sluice/platform/testing/testing';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { ADD_MS_MAX } from './broker-world.ts';

export interface BrokerUnderTest {
  /** For `REDIS_URL`; undefined for Postgres. */
  readonly url: string | undefined;
  close(): Promise<void>;
}

const commitBatch = (id: string): CommitBatch => ({ id, operations: [] });
const DONE: JobOutcome = { outcome: 'done' };

const NO_DATABASE = 'postgres://127.0.0.1:1/none';

/** The broker is up all the time. It, this process or a start of workers may stand still for seconds. */
const WAIT_MS = 30_000;
/** Its locks last 40 s: work that is taken up by their ends is far too late. */
const LASTING = { stalledAfterMs: 60_000 };
/** A part of the second that a read may take, and of the two that a broker has to take a batch back. */
const STALL_MS = 300;

/**
 * Called in a `describe`; the broker is opened once for all.
 *
 * @param openDatabase - makes one for each test, if the broker is Postgres.
 * @returns its address.
 */
export function testQueue(
  openBroker: () => Promise<BrokerUnderTest>,
  openDatabase: () => Promise<string> = () => Promise.resolve(NO_DATABASE),
): void {
  let brokerUrl: string | undefined;
  let options: BrokerOptions;
  let producer: Producer;
  const opened: Consumers[] = [];

  const consume = async (
    processors: Partial<Processors>,
    more: Partial<ConsumerOptions> = {},
  ): Promise<Consumers> => {
    const consumers = await startConsumers(
      { ...options, ...more },
      {
        processCommitBatch: () => Promise.resolve(DONE),
        wakeLane: () => Promise.resolve(DONE),
        laneConcurrency: 4,
        now: Date.now,
        ...processors,
      },
    );
    opened.push(consumers);
    return consumers;
  };

  beforeAll(async () => {
    const broker = await openBroker();
    brokerUrl = broker.url;
    return () => broker.close();
  });
  beforeEach(async () => {
    options = {
      databaseUrl: await openDatabase(),
      redisUrl: brokerUrl,
      prefix: uniquePrefix(),
      shardCount: 2,
      logger: createLogger('test', 'silent'),
    };
    producer = await openProducer(options, ADD_MS_MAX);
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((consumers) => consumers.close()));
    await producer.close();
  });

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
    await Promise.all([consume({ processCommitBatch }), consume({ processCommitBatch })]);
    const ids = Array.from({ length: 40 }, (_, n) => `envelope-${n}`);
    for (const id of ids)
      await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(id) }]);
    await vi.waitFor(() => expect(order).toHaveLength(40), WAIT_MS);
    expect(order).toEqual(ids);
    expect(runningMax).toBe(1);
  });

  test('commit batches that wait behind another are read in order, and do not run again when applied with it', async () => {
    const runAll = async (): Promise<string[]> => {
      for (const id of 'abcdefghijkl')
        await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(`envelope-${id}`) }]);
      const seen: string[] = [];
      const consumers = await consume({
        // A shard counts as busy while hardly any time has passed since its last commit batch.
        now: () => 1_800_000_000_000,
        async processCommitBatch({ id }, readBehind) {
          const behind = await readBehind();
          seen.push([id, ...behind.map((each) => each.id)].join(' ').replaceAll('envelope-', ''));
          return { outcome: 'done', behind: Math.min(behind.length, 3) };
        },
      });
      await vi.waitFor(
        async () => expect(await producer.commitBatchCounts()).toEqual([0, 0]),
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
      () => producer.commitBatchCounts(),
    );
  });

  test('a commit batch that cannot be applied yet is tried again before any later one', async () => {
    const order: string[] = [];
    let failuresLeft = 2;
    for (const id of ['envelope-a', 'envelope-b']) {
      await producer.addCommitBatches([{ shard: 0, envelope: commitBatch(id) }]);
    }
    await consume({
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
      const adding = await openProducer({ ...options, ...more }, ADD_MS_MAX);
      const ids = ['envelope-a', 'envelope-b'].map((name) => `${name} of ${tries}`);
      for (const id of ids) await adding.addCommitBatches([{ shard, envelope: commitBatch(id) }]);
      await adding.close();
      let attempts = 0;
      const first = await consume(
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
      const next = await consume(
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
    await repeatIfStalled(STALL_MS, expectPlaceKept, () => producer.commitBatchCounts());
  });

  // BullMQ takes a connection for good while a worker starts; a stop in that moment did not give it back.
  test('a worker that is stopped while it starts ends at once and leaves no connection behind', async () => {
    for (let round = 0; round < 12; round++) {
      const consumers = await consume({});
      let isClosed = false;
      const closed = consumers.close().then(() => (isClosed = true));
      // It would give up waiting after three seconds. A standstill of the broker is one tick, as the look waits for it.
      await TickClock.pass(50, 2_000, async () => {
        await producer.commitBatchCounts();
        return isClosed;
      });
      expect(isClosed).toBe(true);
      await closed;
    }
  });

  test('a commit batch added again while it waits runs once', async () => {
    const both = [0, 1].map((shard) => ({ shard, envelope: commitBatch(`envelope-${shard}`) }));
    await producer.addCommitBatches(both);
    await producer.addCommitBatches(both);
    expect(await producer.commitBatchCounts()).toEqual([1, 1]);
  });

  test('unapplied batches are listed, even in progress, and the queue heads change with each applied batch', async () => {
    const ids = ['envelope-a', 'envelope-b', 'envelope-c'];
    await producer.addCommitBatches(
      ids.map((id, index) => ({ shard: index === 2 ? 1 : 0, envelope: commitBatch(id) })),
    );
    const asked = [
      { shard: 0, id: 'envelope-a' },
      { shard: 0, id: 'envelope-b' },
      { shard: 1, id: 'envelope-c' },
      { shard: 1, id: 'envelope-unknown' },
    ];
    expect(await producer.listQueued(asked)).toEqual(new Set(ids));
    const before = JSON.stringify(await producer.shardHeads());
    expect(JSON.stringify(await producer.shardHeads())).toBe(before);
    let letGo = () => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await consume({
      processCommitBatch: async ({ id }) => {
        if (id === 'envelope-b') await held;
        return DONE;
      },
    });
    await vi.waitFor(
      async () => expect(await producer.listQueued(asked)).toEqual(new Set(['envelope-b'])),
      WAIT_MS,
    );
    expect(JSON.stringify(await producer.shardHeads())).not.toBe(before);
    letGo();
    await vi.waitFor(
      async () => expect(await producer.listQueued(asked)).toEqual(new Set()),
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
    await producer.addCommitBatches([written('envelope-a', 0)]);
    await producer.addCommitBatches([written('envelope-b', 0), written('envelope-c', 1)]);
    await producer.addCommitBatches([written('envelope-d', 0), written('envelope-e', 1)]);
    await consume({
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

  test('a hundred wake-ups of a sleeping lane are one; one that comes during the drain is kept', async () => {
    const lane: LaneKey = { environmentId: 1, webhookId: 7 };
    for (let n = 0; n < 100; n++) await producer.wakeLane(lane);
    const woken: LaneKey[] = [];
    let letGo = () => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await consume({
      wakeLane: async (key) => {
        woken.push(key);
        if (woken.length === 1) await held;
        return DONE;
      },
    });
    await vi.waitFor(() => expect(woken).toHaveLength(1), WAIT_MS);
    for (let n = 0; n < 5; n++) await producer.wakeLane(lane);
    letGo();
    await vi.waitFor(() => expect(woken).toHaveLength(2), WAIT_MS);
    expect(woken).toEqual([lane, lane]);
  });

  const neighbours: LaneKey[] = Array.from({ length: 40 }, (_, place) => ({
    environmentId: 1,
    webhookId: 300 + place,
  }));
  const RANGE = rangeOf({ environmentId: 1, webhookId: 300 });

  test('neighbouring lanes that are woken together are one wake-up, and a lane of another workspace is one by itself', async () => {
    const other: LaneKey = { environmentId: 2, webhookId: 300 };
    const ranges: LaneRange[] = [];
    const woken: LaneKey[] = [];
    for (let n = 0; n < 3; n++) await producer.wakeLanes([...neighbours, other]);
    await consume({
      wakeRange: async (range) => void ranges.push(range),
      wakeLane: (lane) => {
        woken.push(lane);
        return Promise.resolve(DONE);
      },
    });
    await vi.waitFor(() => expect([ranges, woken]).toEqual([[RANGE], [other]]), WAIT_MS);
    // Jobs run in their order, so an earlier one would have run before this one.
    const marker: LaneKey[] = neighbours.map((lane) => ({ ...lane, environmentId: 3 }));
    await producer.wakeLanes(marker);
    await vi.waitFor(() => expect(ranges).toHaveLength(2), WAIT_MS);
    expect(ranges).toEqual([RANGE, { ...RANGE, environmentId: 3 }]);
    expect(woken).toEqual([other]);
  });

  test('a range that is woken while it is searched is searched again', async () => {
    await producer.wakeLanes(neighbours);
    const ranges: LaneRange[] = [];
    const held = Promise.withResolvers<void>();
    await consume({
      wakeRange: async (range) => {
        ranges.push(range);
        if (ranges.length === 1) await held.promise;
      },
    });
    await vi.waitFor(() => expect(ranges).toHaveLength(1), WAIT_MS);
    await producer.wakeLanes(neighbours);
    await producer.wakeRange(RANGE);
    held.resolve();
    await vi.waitFor(() => expect(ranges).toEqual([RANGE, RANGE]), WAIT_MS);
  });

  test('a search that fails ends neither its worker nor later searches', async () => {
    const ranges: LaneRange[] = [];
    const consumers = await consume({
      wakeRange: async (range) => {
        ranges.push(range);
        if (ranges.length === 1) throw new Error('Postgres is away');
      },
    });
    await producer.wakeLanes(neighbours);
    await vi.waitFor(() => expect(ranges).toHaveLength(1), WAIT_MS);
    await vi.waitFor(async () => {
      await producer.wakeLanes(neighbours);
      expect(ranges.length).toBeGreaterThan(1);
    }, WAIT_MS);
    expect(consumers.report().replacedWorkers).toBe(0);
  });

  test('a process leaves ranges that it has no place for to others', async () => {
    const taken: number[] = [0, 0];
    const held = Promise.withResolvers<void>();
    const hold = (process: number) => async (): Promise<void> => {
      taken[process] = (taken[process] ?? 0) + 1;
      await held.promise;
    };
    const many = Array.from({ length: 12 }, (_, place) =>
      neighbours.map((lane) => ({ ...lane, environmentId: 100 + place })),
    ).flat();
    try {
      await consume({ wakeRange: hold(0) });
      await producer.wakeLanes(many);
      await vi.waitFor(() => expect(taken[0]).toBe(4), WAIT_MS);
      await consume({ wakeRange: hold(1) });
      await vi.waitFor(() => expect(taken).toEqual([4, 4]), WAIT_MS);
    } finally {
      // Otherwise a failure would leave jobs that never end.
      held.resolve();
    }
    await vi.waitFor(() => expect((taken[0] ?? 0) + (taken[1] ?? 0)).toBe(12), WAIT_MS);
  });

  test('a lane can be woken at a given time, and sooner than first requested', async () => {
    const lane: LaneKey = { environmentId: 1, webhookId: 8 };
    const woken: LaneKey[] = [];
    await consume({
      wakeLane: (key) => {
        woken.push(key);
        return Promise.resolve(DONE);
      },
    });
    await producer.wakeLaneAt(lane, Date.now() + 3_600_000, Date.now());
    await producer.wakeLaneAt(lane, Date.now() + 50, Date.now());
    await vi.waitFor(() => expect(woken).toEqual([lane]), WAIT_MS);
  });

  test('durability is read from the broker itself', async () => {
    const durability = await producer.durability();
    // The tests' Postgres runs without fsync, their Redis with `appendfsync always`.
    expect(durability.isSafe).toBe(brokerUrl !== undefined);
    expect(durability.isSaidUnsafe).toBe(brokerUrl === undefined);
  });
}
