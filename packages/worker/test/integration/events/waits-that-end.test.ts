/**
 * Batches of several shards that wait for one another end, in order.
 *
 * That holds after any event to the worker, the operations or the queue of the batch that comes first. On both brokers.
 */
import { countDeadLetteredOperations } from '@sluice/database/events/dead-lettered-operations';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, merge, track } from '@sluice/domain/testing/sample-operations';
import { startConsumers, type Consumers } from '@sluice/platform/consumers/queue-consumers';
import { openProducer } from '@sluice/platform/queue/queue';
import { repeatIfStalled } from '@sluice/platform/testing/stall-watch';
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import {
  createShardsWorld,
  eventOfOne,
  shardOfBatch,
  shardOfCalls,
  type ShardsWorld,
} from '../support/shards-world.ts';

/** Of workers whose locks last 400 s: a batch that is held until then is far too late. */
const LASTING = { stalledAfterMs: 600_000 };
const MOVES_MAX = 500;
/** Before all that time is lost. */
const MOVES_BETWEEN_MAX = 50;
/** A part of the two seconds that a broker has to take a batch back. */
const STALL_MS = 300;

/** A time that no parser lets through, and Postgres refuses. */
const poison = (person: string): Operation => ({
  ...track(person, 'poisoned'),
  occurredAtMs: 'never' as never,
});

describe.each(['redis', 'postgres'] as const)('on %s', (broker) => {
  let world: ShardsWorld;
  let environmentId: number;
  beforeAll(async () => {
    world = await createShardsWorld(broker);
  });
  afterAll(() => world.close());
  beforeEach(() => {
    environmentId = world.newEnvironment();
  });

  const shardOf = (who: string) => shardOfCalls(environmentId, who);

  /** An email that begins with a name, and whose calls go to the shard of somebody's calls. */
  function emailInShardOf(who: string, name: string): string {
    const candidates = Array.from({ length: 1_000 }, (_, index) => `${name}${index}@x.y`);
    return candidates.find((email) => shardOf(`email:${email}`) === shardOf(who)) as string;
  }

  test('a worker that dies while it applies a batch of another shard leaves both to the next', async () => {
    const [event, merged] = (await world.addAboutOne(
      environmentId,
      [track('email:s@x.y', 'bought')],
      [merge('id:p', 'id:s')],
    )) as [CommitBatch, CommitBatch];
    const dying = {
      ...world.deps,
      newId: () => {
        throw new Error('the process has died');
      },
    };
    await expect(processCommitBatch(dying, merged, [], world.newPending())).rejects.toThrow('died');
    expect(await world.eventNames(environmentId)).toEqual([]);
    expect(await world.countOf('people', environmentId)).toBe(2);

    const pending = world.newPending();
    await world.processToEnd(merged, pending);
    await world.processToEnd(event, pending);
    expect(await world.stateOf(environmentId)).toMatchObject({
      events: [eventOfOne('bought', 'p')],
    });
    expect(await world.countOf('people', environmentId)).toBe(1);
  });

  test('a worker that dies after its commit, with its batch still in the log, does not block others', async () => {
    const [event, merged] = (await world.addAboutOne(
      environmentId,
      [track('email:s@x.y', 'bought')],
      [merge('id:p', 'id:s')],
    )) as [CommitBatch, CommitBatch];
    const dying = world.newPending();
    vi.spyOn(dying, 'removeApplied').mockImplementation(() => undefined);
    await processCommitBatch(world.deps, event, [], dying);

    // A waiting process finds it applied long before it would take the batch over.
    const waiting = { ...world.deps, waitMsMax: 60_000 };
    await world.processToEnd(merged, world.newPending(), waiting);
    expect(await world.stateOf(environmentId)).toMatchObject({
      events: [eventOfOne('bought', 'p')],
    });
  });

  test('a poisoned operation of the batch before is set aside, and the batch that waits for it goes on', async () => {
    const [first, second] = (await world.addAboutOne(
      environmentId,
      [track('email:s@x.y', 'before'), poison('email:s@x.y'), track('email:s@x.y', 'after')],
      [merge('id:p', 'id:s')],
    )) as [CommitBatch, CommitBatch];
    const deadLetteredBefore = await countDeadLetteredOperations(world.database, 100);
    const pending = world.newPending();
    await world.processToEnd(second, pending);
    await world.processToEnd(first, pending);
    expect(await world.stateOf(environmentId)).toMatchObject({
      events: [eventOfOne('after', 'p'), eventOfOne('before', 'p')],
    });
    expect(await countDeadLetteredOperations(world.database, 100)).toBe(deadLetteredBefore + 1);
  });

  test('a batch that was logged before, and is behind in the queue of the shard, is applied first', async () => {
    const [first, second] = (await world.addAboutOne(
      environmentId,
      [identify('id:s', { step: 1 })],
      [identify('id:s', { step: 2 })],
    )) as [CommitBatch, CommitBatch];
    // The flushes of two intakes have crossed: the second one is at the head.
    const pending = world.newPending();
    const deps = { ...world.deps, waitMsMax: 60_000 };
    expect(await processCommitBatch(deps, second, [], pending)).toMatchObject({
      outcome: 'applied',
      operations: 2,
    });
    expect(await processCommitBatch(deps, first, [], pending)).toEqual({
      outcome: 'already-applied',
    });
    const people = await world.rowsOf('people', environmentId, `id, attributes -> 'step' as step`);
    expect(people.find(({ id }) => id === 's')).toMatchObject({ step: 2 });
  });

  // Together they were applied in the order of the queue, if their person is known by two names.
  test('batches of one shard whose flushes have crossed are applied in the order of the log, by any name', async () => {
    const email = emailInShardOf('id:s', 's');
    await world.process(inEnvironment(environmentId, identify('id:s', { email })));
    const [first, second] = (await world.add([
      inEnvironment(environmentId, identify(`email:${email}`, { step: 1 })),
      inEnvironment(environmentId, identify('id:s', { step: 2 })),
    ])) as [CommitBatch, CommitBatch];
    expect(shardOfBatch(first)).toBe(shardOfBatch(second));
    const pending = world.newPending();
    expect(await processCommitBatch(world.deps, second, [first], pending)).toMatchObject({
      outcome: 'applied',
      operations: 2,
    });
    expect(await world.rowsOf('people', environmentId, `attributes -> 'step' as step`)).toEqual([
      { step: 2 },
    ]);
  });

  test('two shards do not wait for batches behind the head of the other', async () => {
    const [p, q] = ['id:p', 'id:q'] as const;
    const emails = { p: emailInShardOf(q, 'p'), q: emailInShardOf(p, 'q') };
    await world.process(
      inEnvironment(
        environmentId,
        identify(p, { email: emails.p }),
        identify(q, { email: emails.q }),
      ),
    );
    const calls = [
      track(p, 'p, 1'),
      track(q, 'q, 1'),
      track(`email:${emails.q}`, 'q, 2'),
      track(`email:${emails.p}`, 'p, 2'),
    ];
    const [p1, q1, q2, p2] = (await world.add(
      calls.map((call) => inEnvironment(environmentId, call)),
    )) as [CommitBatch, CommitBatch, CommitBatch, CommitBatch];
    expect([shardOfBatch(q2), shardOfBatch(p2)]).toEqual([shardOfBatch(p1), shardOfBatch(q1)]);

    // The batch behind each head comes after the head of the other shard.
    const deps = { ...world.deps, waitMsMax: 60_000 };
    const work = async (head: CommitBatch, behind: CommitBatch): Promise<void> => {
      const pending = world.newPending();
      const result = await processCommitBatch(deps, head, [behind], pending);
      expect(result).toMatchObject({ outcome: 'applied' });
      if (result.outcome === 'applied' && result.envelopes < 2)
        await world.processToEnd(behind, pending, deps);
    };
    await Promise.all([work(p1, q2), work(q1, p2)]);
    expect(await world.eventNames(environmentId)).toHaveLength(4);
  });

  /** @param own - a world of which no shard is held. */
  async function expectAllApplied(own: ShardsWorld): Promise<void> {
    const environment = own.newEnvironment();
    const names = ['id:s', 'email:s@x.y', 'anonymous_id:v'];
    const count = 30;
    await own.process(
      inEnvironment(environment, identify('id:s', { email: 's@x.y', anonymous_id: 'v' })),
    );
    const steps = Array.from({ length: count }, (_, index) => index + 1);
    const batches = await own.add(
      steps.map((step) =>
        inEnvironment(environment, identify(names[step % names.length] as string, { step })),
      ),
    );
    expect(new Set(batches.map(shardOfBatch)).size).toBeGreaterThan(1);

    let appliedCount = 0;
    const start = (): Promise<Consumers> =>
      startConsumers(
        { ...own.brokerOptions, ...LASTING },
        {
          async processCommitBatch(batch, readBehind, pending) {
            const deps = { ...own.deps, waitMsMax: 200 };
            const result = await processCommitBatch(deps, batch, await readBehind(), pending);
            if (result.outcome === 'waiting')
              return { outcome: 'retry', afterMs: 0, reason: 'earlier batches come first' };
            appliedCount++;
            return {
              outcome: 'done',
              behind: result.outcome === 'applied' ? result.envelopes - 1 : 0,
            };
          },
          wakeLane: () => Promise.resolve({ outcome: 'done' }),
          laneConcurrency: 1,
          now: () => performance.now(),
        },
      );
    const stepNow = async (): Promise<number> => {
      const [person] = await own.rowsOf('people', environment, `attributes -> 'step' as step`);
      return Number(person?.['step'] ?? 0);
    };
    let consumers = await start();
    try {
      let step = 0;
      let movesAtStep = 0;
      for (let moves = 0; step < count; moves++) {
        const next = await start();
        await consumers.close();
        consumers = next;
        const before = step;
        step = await stepNow();
        if (step > before) movesAtStep = moves;
        const said = `step ${step}, ${appliedCount} batches applied`;
        expect(moves, said).toBeLessThan(MOVES_MAX);
        expect(moves - movesAtStep, said).toBeLessThan(MOVES_BETWEEN_MAX);
      }
    } finally {
      await consumers.close();
    }
    const changes = await own.rowsOf('events', environment, `data -> 'step' as step`);
    // Each one saw the state after the one before it.
    expect(
      changes
        .map(({ step }) => step as { from: number | null; to: number } | null)
        .filter((step) => step !== null)
        .toSorted((one, other) => one.to - other.to),
    ).toEqual(steps.map((step) => ({ from: step === 1 ? null : step - 1, to: step })));
  }

  test('workers come and go while batches of all shards wait for one another', async () => {
    const asked = await openProducer(world.brokerOptions);
    onTestFinished(() => asked.close());
    // A batch that the broker did not take back in time holds its shard until its lock ends.
    await repeatIfStalled(
      STALL_MS,
      async (tries) => {
        if (tries === 1) return expectAllApplied(world);
        const own = await createShardsWorld(broker);
        onTestFinished(() => own.close());
        return expectAllApplied(own);
      },
      () => asked.commitBatchCounts(),
    );
  }, 900_000);
});
