/** Batches in the log that reach their queue late or never. On both brokers. */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { identify, merge, track } from '@sluice/domain/testing/sample-operations';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import type { PendingBatches } from '@sluice/platform/consumers/pending-batches';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { readEarlier } from '../../../src/events/earlier-runs.ts';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import {
  createShardsWorld,
  eventOfOne,
  shardOfCalls,
  type ShardsWorld,
} from '../support/shards-world.ts';

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

  test('a part that is in the log and not in its queue is waited for, and its rest applied', async () => {
    const environment = environmentId;
    const calls = await world.add([
      inEnvironment(environment, identify('id:one', { a: 1 }), identify('id:two', { a: 1 })),
      inEnvironment(environment, identify('id:one', { b: 2 }), identify('id:two', { b: 2 })),
    ]);
    const lost = calls[0] as CommitBatch;
    // The queue of one shard did not get its part: the intake keeps it on its disk.
    await world.takeFromQueues([lost]);
    const pending = world.newPending();
    const deps = { ...world.deps, unqueuedMsMax: 100 };
    for (const batch of calls.slice(1)) await world.processToEnd(batch, pending, deps);
    expect(await world.rowsOf('people', environment, 'id')).toHaveLength(2);
    // The intake adds it later; it is applied once.
    await world.processToEnd(lost, pending, deps);
    await world.processToEnd(lost, pending, deps);
    const people = await world.rowsOf('people', environment, 'id, attributes');
    expect(people.map(({ attributes }) => attributes)).toEqual([
      { a: 1, b: 2 },
      { a: 1, b: 2 },
    ]);
  });

  test('a batch that is queued after it was waited for keeps its place before the next one of its shard', async () => {
    const [first, event, second] = (await world.addAboutOne(
      environmentId,
      [identify('id:s', { step: 1 })],
      [track('email:s@x.y', 'between')],
      [identify('id:s', { step: 2 })],
    )) as [CommitBatch, CommitBatch, CommitBatch];
    // The master of their shard is replaced: it has got neither, and the intake has no answer.
    await world.takeFromQueues([first, second]);
    const pending = world.newPending();
    await world.processToEnd(event, pending, { ...world.deps, waitMsMax: 0, unqueuedMsMax: 0 });
    await world.addAgain([first, second]);
    const [last] = (await world.add([
      inEnvironment(environmentId, track('email:s@x.y', 'last')),
    ])) as [CommitBatch];
    await world.processToEnd(last, pending, { ...world.deps, waitMsMax: 0 });
    const people = await world.rowsOf('people', environmentId, `id, attributes -> 'step' as step`);
    expect(people.find(({ id }) => id === 's')).toMatchObject({ step: 2 });
  });

  test('a batch that is queued once a broker answers again is waited for, however long it hung', async () => {
    const [first, merged] = (await world.addAboutOne(
      environmentId,
      [track('email:s@x.y', 'bought')],
      [merge('id:p', 'id:s')],
    )) as [CommitBatch, CommitBatch];
    await world.takeFromQueues([first]);
    const pending = world.newPending();
    const read = pending.readToApply.bind(pending);
    const hangs = vi
      .spyOn(pending, 'readToApply')
      .mockImplementationOnce(read)
      .mockImplementationOnce(async (batches) => {
        const until = performance.now() + 1_000;
        await vi.waitFor(() => expect(performance.now()).toBeGreaterThan(until), 5_000);
        return read(batches);
      });
    const leaves = vi.spyOn(pending, 'leaveOut');
    const processed = world.processToEnd(merged, pending, {
      ...world.deps,
      waitMsMax: 0,
      unqueuedMsMax: 1_000,
    });
    await vi.waitFor(() => expect(hangs.mock.settledResults[1]?.type).toBe('fulfilled'), 5_000);
    await world.addAgain([first]);
    await processed;
    expect(leaves.mock.calls.flat(2)).toEqual([]);
    expect(await world.stateOf(environmentId)).toMatchObject({
      events: [eventOfOne('bought', 'p')],
    });
  });

  test('a batch that is queued while others are looked at is read too, also if its time is over', async () => {
    const [first, second] = (await world.addAboutOne(
      environmentId,
      [track('email:s@x.y', 'bought')],
      [identify('id:s', { step: 1 })],
    )) as [CommitBatch, CommitBatch];
    await world.takeFromQueues([first]);
    const pending = world.newPending();
    const read = pending.readToApply.bind(pending);
    vi.spyOn(pending, 'readToApply').mockImplementationOnce(async (batches) => {
      const found = await read(batches);
      await world.addAgain([first]);
      return found;
    });
    const batches = await Promise.all([first, second].map(({ id }) => pending.find(id)));
    const earlier = await readEarlier(world.database, pending, batches as PendingBatch[], 0);
    expect(earlier?.map(({ envelope }) => envelope.id)).toEqual([second.id, first.id]);
  });

  test('an attempt ends before the wait for such a batch does, and the next attempt goes on with the wait', async () => {
    const [lost, merged] = (await world.addAboutOne(
      environmentId,
      [track('email:s@x.y', 'lost')],
      [merge('id:p', 'id:s')],
    )) as [CommitBatch, CommitBatch];
    await world.takeFromQueues([lost]);
    const pending = world.newPending();
    // One attempt lasts 1 s, and only the first waits for the worker of the other shard.
    const deps = { ...world.deps, waitMsMax: 500, unqueuedMsMax: 1_500 };
    const process = async () => (await processCommitBatch(deps, merged, [], pending)).outcome;
    expect(await process()).toBe('waiting');
    const waits = vi.spyOn(pending, 'changed');
    expect(await process()).toBe('applied');
    expect(waits).not.toHaveBeenCalled();
    expect(await world.countOf('people', environmentId)).toBe(1);
  });

  /** A person in the shard of another one's calls, or in another shard. */
  function personBeside(other: string, isInItsShard: boolean): string {
    const candidates = Array.from({ length: 1_000 }, (_, index) => `id:p${index}`);
    return candidates.find((who) => (shardOf(who) === shardOf(other)) === isInItsShard) as string;
  }

  /** Two people's batches that never reach a queue, and later ones of theirs, which then have to wait for those. */
  async function addBehindLost(who: readonly [string, string]) {
    const calls = [1, 2].flatMap((step) => who.map((person) => identify(person, { step })));
    const batches = await world.add(calls.map((call) => inEnvironment(environmentId, call)));
    await world.takeFromQueues(batches.slice(0, 2));
    return batches.slice(2) as [CommitBatch, CommitBatch];
  }

  const countLooks = async (pending: PendingBatches, process: () => Promise<void>) => {
    const looks = vi.spyOn(pending, 'readToApply');
    await process();
    const { length } = looks.mock.calls;
    looks.mockRestore();
    return length;
  };

  test.each([
    ['one shard are waited for together', true],
    [
      'different shards are waited for one after another, since the broker can hang for one alone',
      false,
    ],
  ])('such batches of %s', async (_, isTogether) => {
    const [one, other] = await addBehindLost(['id:a', personBeside('id:a', isTogether)]);
    const pending = world.newPending();
    const deps = { ...world.deps, waitMsMax: 0, unqueuedMsMax: 1_000 };
    const first = await countLooks(pending, () => world.processToEnd(one, pending, deps));
    expect(first).toBeGreaterThan(10);
    const second = await countLooks(pending, () => world.processToEnd(other, pending, deps));
    expect(second > 1).toBe(!isTogether);
    const people = await world.rowsOf('people', environmentId, `attributes -> 'step' as step`);
    expect(people).toEqual([{ step: 2 }, { step: 2 }]);
  });
});
