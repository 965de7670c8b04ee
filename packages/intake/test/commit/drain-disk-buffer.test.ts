/**
 * Flushes on their way from disk to a broker that is back.
 *
 * Also the time at which a refused call should come again.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CommitterWorld, flush, turn, unique, WAIT, OWNERS } from '../support/committer-world.ts';

let world: CommitterWorld;
beforeEach(() => void (world = new CommitterWorld()));
afterEach(() => world.close());

describe('the drain', () => {
  test('ends while calls keep coming, in order', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    let next = 0;
    const sent: string[] = [];
    const send = async () => {
      const id = `flush-${next++}`;
      sent.push(id);
      await committer.commit(flush(id), false, world.nowMs, OWNERS);
    };
    for (let n = 0; n < 100; n++) await send();
    world.broker.mode = 'up';
    // One in each turn of the event loop, as a batcher under load does.
    while (!world.diskBuffer.isEmpty) {
      await send();
      await turn();
      expect(next).toBeLessThan(1_000);
    }
    await send();
    expect(world.broker.added).toEqual(sent);
    expect(world.broker.attempts.at(-1)).toBe(sent.at(-1));
  });

  test('stages each flush with the time at which it was written, by the broker’s clock', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    for (const id of ['a', 'b']) {
      world.nowMs += 10;
      await committer.commit(flush(id), false, world.nowMs, OWNERS);
    }
    const writtenAtMs = world.lease.brokerNow();
    // A clock that goes back changes no order.
    world.nowMs -= 60_000;
    await committer.commit(flush('c'), false, world.nowMs, OWNERS);
    world.broker.mode = 'up';
    await world.untilEmpty();
    expect(world.broker.staged.map(({ atMs }) => atMs)).toEqual([
      writtenAtMs - 10,
      writtenAtMs,
      writtenAtMs,
    ]);
  });

  test.each([false, true])(
    'marks a flush that comes too late for its place: %s',
    async (isLate) => {
      const committer = world.start();
      world.broker.mode = 'refusing';
      await committer.commit(flush('a'), false, world.nowMs, OWNERS);
      world.lease.isLate = isLate;
      world.broker.mode = 'up';
      await world.untilEmpty();
      expect(world.broker.staged.map(({ text }) => text.includes('"isReplayed":true'))).toEqual([
        isLate,
      ]);
    },
  );

  test('begins after an outage with a report, which shows whether its flushes are late', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    await committer.commit(flush('a'), false, world.nowMs, OWNERS);
    world.lease.reported = async () => {
      await turn();
      world.lease.isLate = true;
    };
    world.broker.mode = 'up';
    await world.untilEmpty();
    expect(world.broker.staged.map(({ text }) => text.includes('"isReplayed":true'))).toEqual([
      true,
    ]);
  });

  test('that is cut between the broker’s confirmation and the delete sends the same ids again', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    for (const id of ['a', 'b', 'c']) await committer.commit(flush(id), false, world.nowMs, OWNERS);
    vi.spyOn(world.diskBuffer, 'deleteOldest').mockImplementation(() => {
      // The process ends here.
      world.broker.mode = 'refusing';
      throw new Error('cut');
    });
    world.broker.mode = 'up';
    await vi.waitFor(() => expect(world.broker.added).toEqual(['a']), WAIT);
    await world.stop();

    world.broker.mode = 'up';
    const restarted = world.start();
    await restarted.commit(flush('d'), false, world.nowMs, OWNERS);
    await world.untilEmpty();
    expect(world.broker.added[1]).toBe('a');
    expect(unique(world.broker.added)).toEqual(['a', 'b', 'c', 'd']);
  });

  test('moves the flushes of an earlier process before new ones', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    await committer.commit(flush('a'), false, world.nowMs, OWNERS);
    await world.stop();
    const restarted = world.start();
    await restarted.commit(flush('b'), false, world.nowMs, OWNERS);
    world.broker.mode = 'up';
    await world.untilEmpty();
    expect(unique(world.broker.added)).toEqual(['a', 'b']);
  });

  test('adds one flush first, then several together', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    await committer.commit(flush('a'), true, world.nowMs, OWNERS);
    for (const id of ['b', 'c']) await committer.commit(flush(id), false, world.nowMs, OWNERS);
    world.broker.attempts = [];
    world.broker.mode = 'up';
    await world.untilEmpty();
    // One first: a flush that the broker refuses is then alone.
    expect(world.broker.attempts).toEqual(['a', 'b,c']);
  });

  test('is left to the next start if a stop would take too long', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    for (const id of ['a', 'b', 'c', 'd'])
      await committer.commit(flush(id), false, world.nowMs, OWNERS);
    world.broker.onAdd = () => (world.nowMs += 5_000);
    world.broker.mode = 'up';
    await world.stop();
    expect(world.broker.added).toEqual(['a']);
    world.broker.onAdd = () => {};
    world.start();
    await world.untilEmpty();
    expect(world.broker.added).toEqual(['a', 'b', 'c', 'd']);
  });

  test('a stop moves every flush to the broker if the broker is there', async () => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    for (const id of ['a', 'b', 'c', 'd'])
      await committer.commit(flush(id), false, world.nowMs, OWNERS);
    world.broker.mode = 'up';
    await world.stop();
    expect(world.broker.added).toEqual(['a', 'b', 'c', 'd']);
    world.start();
    expect(world.diskBuffer.isEmpty).toBe(true);
  });
});

describe('Retry-After', () => {
  test('grows with the outage, within a minute', async () => {
    const committer = world.start();
    expect(committer.retryAfterSeconds()).toBe(1);
    world.broker.mode = 'refusing';
    await committer.commit(flush('a'), false, world.nowMs, OWNERS);
    expect(committer.retryAfterSeconds()).toBe(1);
    world.nowMs += 20_000;
    expect(committer.retryAfterSeconds()).toBe(10);
    world.nowMs += 3_600_000;
    expect(committer.retryAfterSeconds()).toBe(60);
    world.broker.mode = 'up';
    await world.untilEmpty();
    expect(committer.retryAfterSeconds()).toBe(1);
  });

  test('is the time until a tenth of the disk buffer is free while it drains', async () => {
    const sizeBytes = Buffer.byteLength(JSON.stringify(flush('flush-100')));
    const committer = world.start(100 * sizeBytes);
    world.broker.mode = 'refusing';
    for (let n = 100; n < 200; n++)
      await committer.commit(flush(`flush-${n}`), false, world.nowMs, OWNERS);
    const seen: number[] = [];
    world.broker.onAdd = () => {
      // Each step takes two seconds. After the first, 1 of 100 has left, and nine more must leave until a tenth is
      // free.
      seen.push(committer.retryAfterSeconds());
      world.nowMs += 2_000;
    };
    world.broker.mode = 'up';
    await world.untilEmpty();
    expect(seen[1]).toBe(18);
    expect(seen.at(-1)).toBe(1);
  });
});
