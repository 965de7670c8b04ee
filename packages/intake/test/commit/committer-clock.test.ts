/** Durations are measured by a clock that is never set: the machine's may be set back or ahead at any moment. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHealth } from '../../src/health.ts';
import { createBatcher, createBroker, event } from '../support/batcher-under-test.ts';
import { CommitterWorld, flush, OWNERS } from '../support/committer-world.ts';

const HOUR_MS = 3_600_000;
const SET_BY = [-HOUR_MS, HOUR_MS];

let world: CommitterWorld;
beforeEach(() => void (world = new CommitterWorld()));
afterEach(() => world.close());

const now = () => world.nowMs + world.setByMs;

test.each(SET_BY)(
  'Retry-After follows the outage, though the clock was set by %i ms',
  async (setByMs) => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    await committer.commit(flush('a'), false, now(), OWNERS);
    world.setByMs = setByMs;
    world.nowMs += 20_000;
    expect(committer.retryAfterSeconds()).toBe(10);
  },
);

test.each(SET_BY)(
  'Retry-After follows the drain, though the clock was set by %i ms',
  async (setByMs) => {
    const sizeBytes = Buffer.byteLength(JSON.stringify(flush('flush-100')));
    const committer = world.start(100 * sizeBytes);
    world.broker.mode = 'refusing';
    for (let n = 100; n < 200; n++)
      await committer.commit(flush(`flush-${n}`), false, now(), OWNERS);
    const seen: number[] = [];
    world.broker.onAdd = () => {
      seen.push(committer.retryAfterSeconds());
      world.setByMs = setByMs;
      world.nowMs += 2_000;
    };
    world.broker.mode = 'up';
    await world.untilEmpty();
    // After one of a hundred in two seconds, nine more until a tenth is free.
    expect(seen[1]).toBe(18);
  },
);

test.each(SET_BY)(
  'a stop drains for as long as it may and no longer, though the clock is set by %i ms meanwhile',
  async (setByMs) => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    for (const id of ['a', 'b', 'c', 'd']) await committer.commit(flush(id), false, now(), OWNERS);
    world.broker.onAdd = () => {
      world.setByMs = setByMs;
      world.nowMs += 3_000;
    };
    world.broker.mode = 'up';
    await committer.stop();
    // One, then two more; the rest would begin after more than five seconds.
    expect(world.broker.added).toEqual(['a', 'b', 'c']);
    expect(world.diskBuffer.commitBatchCount).toBe(1);
  },
);

test.each(SET_BY)(
  'calls that wait count as stuck after ten seconds, not sooner and not later for a clock that was set by %i ms',
  async (setByMs) => {
    const broker = createBroker();
    const batcher = createBatcher({ commit: broker.commit });
    const committer = world.start();
    const health = createHealth({
      producer: { ...world.broker, fill: () => Promise.resolve({ ratio: 0, isFull: false }) },
      batcher,
      diskBuffer: world.diskBuffer,
      lease: { stagedCount: 0 },
      committer,
      monotonicNow: () => world.nowMs,
    });
    const arrival = broker.arrival();
    batcher.add([event('a', '1')], 10, () => undefined);
    await arrival;
    expect(await health()).toMatchObject({ isReady: true });
    world.setByMs = setByMs;
    world.nowMs += 9_000;
    expect(await health()).toMatchObject({ isReady: true });
    world.nowMs += 2_000;
    expect(await health()).toMatchObject({ isReady: false, details: { stuck: true } });
    broker.flushes[0]?.confirm();
    await batcher.drain();
    expect(await health()).toMatchObject({ isReady: true });
  },
);

test.each(SET_BY)(
  'a disk buffer that does not move counts as stuck after ten seconds, though the clock was set by %i ms',
  async (setByMs) => {
    const committer = world.start();
    world.broker.mode = 'refusing';
    await committer.commit(flush('a'), false, now(), OWNERS);
    const movedAtMs = committer.lastMovedAtMs;
    world.setByMs = setByMs;
    world.nowMs += 11_000;
    expect(world.nowMs - committer.lastMovedAtMs).toBe(world.nowMs - movedAtMs);
    world.broker.wake();
    await world.untilEmpty();
    expect(committer.lastMovedAtMs).toBe(world.nowMs);
  },
);
