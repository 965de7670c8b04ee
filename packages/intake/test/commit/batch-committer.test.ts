/** One flush after another: to the broker, or to the disk buffer while that is away. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CommitterWorld, flush, turn, unique, WAIT, OWNERS } from '../support/committer-world.ts';

let world: CommitterWorld;
beforeEach(() => void (world = new CommitterWorld()));
afterEach(() => world.close());

describe('a flush', () => {
  test('goes to the broker alone while that confirms', async () => {
    const committer = world.start();
    expect(await committer.commit(flush('a'), false, world.nowMs, OWNERS)).toBe('broker');
    expect(world.broker.added).toEqual(['a']);
    expect(world.diskBuffer.isEmpty).toBe(true);
  });

  test.each(['refusing', 'hanging'] as const)(
    'is kept, and is first when a broker that was %s is back; then calls go straight again',
    async (mode) => {
      const committer = world.start();
      world.broker.mode = mode;
      // The broker's client may still hold the bytes of the first.
      expect(await committer.commit(flush('a'), false, world.nowMs, OWNERS)).toBe('spill');
      expect(await committer.commit(flush('b'), false, world.nowMs, OWNERS)).toBe('spill');
      await committer.commit(flush('c'), false, world.nowMs, OWNERS);
      expect(world.broker.added).toEqual([]);
      expect(world.diskBuffer.commitBatchCount).toBe(3);
      // Only small questions are asked meanwhile.
      expect(world.broker.attempts).toEqual(['a']);
      world.broker.wake();
      await world.untilEmpty();
      await committer.commit(flush('d'), false, world.nowMs, OWNERS);
      expect(unique(world.broker.added)).toEqual(['a', 'b', 'c', 'd']);
      expect(world.broker.attempts.at(-1)).toBe('d');
    },
  );

  test('has the rest of the deadline of its oldest call, not a whole deadline', async () => {
    const deadlineMs = 60_000;
    const committer = world.start(undefined, deadlineMs);
    world.broker.mode = 'hanging';
    await committer.commit(flush('a'), false, world.nowMs - deadlineMs + 1, OWNERS);
    expect(world.broker.attempts).toEqual(['a']);
    expect(world.diskBuffer.commitBatchCount).toBe(1);
  });

  test('waits no longer than the deadline if the clock went back since its calls came', async () => {
    const committer = world.start();
    world.broker.mode = 'hanging';
    expect(await committer.commit(flush('a'), false, world.nowMs + 3_600_000, OWNERS)).toBe(
      'spill',
    );
  });

  test('however long its calls have waited, a broker that answers is asked and takes it', async () => {
    const committer = world.start();
    world.broker.mode = 'hanging';
    const committed = committer.commit(flush('a'), false, world.nowMs - 3_600_000, OWNERS);
    setTimeout(() => world.broker.wake(), 10);
    await committed;
    expect(world.diskBuffer.isEmpty).toBe(true);
    expect(world.broker.added).toEqual(['a']);
  });

  test('one of unknown outcome reaches the broker before any later one, whenever it wakes', async () => {
    const committer = world.start();
    world.broker.mode = 'hanging';
    await committer.commit(flush('a'), false, world.nowMs, OWNERS);
    const asleep = world.broker.late.splice(0);
    world.broker.mode = 'up';
    await committer.commit(flush('b'), false, world.nowMs, OWNERS);
    await world.untilEmpty();
    // The first try is done at last, behind everything: a second copy of an id that is there.
    for (const add of asleep) add();
    expect(unique(world.broker.added)).toEqual(['a', 'b']);
  });

  test('of shards without a common transaction stays on the disk until all have it, so a crash cannot lose it', async () => {
    const first = world.start();
    world.broker.isAtomicAcrossShards = false;
    await first.commit(flush('a'), true, world.nowMs, OWNERS);
    expect(world.diskBuffer.isEmpty).toBe(true);
    const adding = first.commit(flush('b'), true, world.nowMs, OWNERS);
    // Some shards may have it now. The next start finds this:
    expect(world.diskBuffer.commitBatchCount).toBe(1);
    await adding;
    expect(world.diskBuffer.isEmpty).toBe(true);
    expect(world.broker.added).toEqual(['a', 'b']);
  });

  test('is added again if only some of its shards confirmed it', async () => {
    const committer = world.start();
    world.broker.isAtomicAcrossShards = false;
    world.broker.mode = 'refusing';
    await committer.commit(flush('a'), true, world.nowMs, OWNERS);
    expect(world.diskBuffer.commitBatchCount).toBe(1);
    world.broker.wake();
    await world.untilEmpty();
    expect(world.broker.added).toEqual(['a']);
  });

  test('that the broker refuses by itself holds back the later ones, and is never dropped', async () => {
    const committer = world.start();
    world.broker.poison = 'a';
    for (const id of ['a', 'b', 'c']) await committer.commit(flush(id), false, world.nowMs, OWNERS);
    await vi.waitFor(
      () => expect(world.broker.attempts.filter((ids) => ids === 'a').length).toBeGreaterThan(3),
      WAIT,
    );
    expect(world.broker.added).toEqual([]);
    const movedAtMs = committer.lastMovedAtMs;
    world.nowMs += 60_000;
    expect(committer.lastMovedAtMs).toBe(movedAtMs);
    world.broker.poison = undefined;
    await world.untilEmpty();
    expect(world.broker.added).toEqual(['a', 'b', 'c']);
    expect(committer.lastMovedAtMs).toBe(world.nowMs);
  });

  test('is answered from the disk when its time has passed for everybody', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    for (const id of ['a', 'b']) {
      const passed = Promise.withResolvers<void>();
      const waiting = vi.spyOn(world.lease, 'untilPassed').mockReturnValue(passed.promise);
      let isAnswered = false;
      const answer = committer
        .commit(flush(id), false, world.nowMs, OWNERS)
        .then(() => (isAnswered = true));
      await vi.waitFor(() => expect(waiting).toHaveBeenCalled(), WAIT);
      expect(isAnswered).toBe(false);
      waiting.mockClear();
      passed.resolve();
      await answer;
    }
  });

  test('is refused when there is no capacity, and taken again when there is', async () => {
    const committer = world.start(100);
    world.broker.mode = 'refusing';
    await committer.commit(flush('a'), false, world.nowMs, OWNERS);
    await expect(committer.commit(flush('b'), false, world.nowMs, OWNERS)).rejects.toMatchObject({
      code: 'BROKER_UNAVAILABLE',
    });
    expect(world.diskBuffer.commitBatchCount).toBe(1);
    world.broker.mode = 'up';
    await world.untilEmpty();
    await committer.commit(flush('c'), false, world.nowMs, OWNERS);
    expect(world.broker.added).toEqual(['a', 'c']);
  });

  test('is refused if the disk is full, and the next flush goes to the broker again', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    vi.spyOn(world.diskBuffer, 'append').mockImplementation(() => {
      throw new Error('database or disk is full');
    });
    await expect(committer.commit(flush('a'), false, world.nowMs, OWNERS)).rejects.toMatchObject({
      code: 'BROKER_UNAVAILABLE',
    });
    world.broker.mode = 'up';
    await committer.commit(flush('b'), false, world.nowMs, OWNERS);
    expect(world.broker.added).toEqual(['b']);
  });

  test('that must wait for batches on the disks of other intakes is staged, and its own disk stays empty', async () => {
    const committer = world.start();
    world.broker.heldBack = ['held'];
    expect(await committer.commit(flush('a'), false, world.nowMs, OWNERS)).toBe('stage');
    expect(world.broker.staged).toEqual([{ atMs: undefined, text: JSON.stringify(flush('a')) }]);
    expect(world.diskBuffer.isEmpty).toBe(true);
  });

  test('that need wait only a moment is not staged', async () => {
    const committer = world.start();
    world.broker.heldBack = ['ending', 'ending'];
    await committer.commit(flush('a'), false, world.nowMs, OWNERS);
    expect(world.broker.staged).toEqual([]);
    expect(world.broker.added).toEqual(['a']);
  });

  test('is answered from the disk only when the broker knows of that, or the lease has ended', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    let end = (): void => {};
    world.lease.beforeKeeping = () => new Promise((resolve) => (end = resolve));
    let isCommitted = false;
    const committed = committer
      .commit(flush('a'), false, world.nowMs, OWNERS)
      .then(() => (isCommitted = true));
    for (let turns = 0; turns < 10; turns++) await turn();
    expect([isCommitted, world.diskBuffer.isEmpty]).toEqual([false, true]);
    end();
    await committed;
    expect(world.diskBuffer.isEmpty).toBe(false);
  });
});
