/** The next requester to be served, and the past of its share. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FairPermits, type Permit } from '../../src/scheduling/fair-permits.ts';

const LOOK_INTERVAL_MS = 20;

function createWorld(options: { permitsMax: number; slowMax?: number }) {
  let nowMs = 0;
  const permits = new FairPermits({
    slowMax: 0,
    slowAfterMs: 50,
    ...options,
    monotonicNow: () => nowMs,
    idleTimeMs: () => nowMs,
  });
  const served: string[] = [];
  const acquire = (accountId: number, lane: string): Permit => {
    const permit = permits.tryAcquire({ accountId, lane });
    if (!permit) throw new Error(`no permit is free for ${lane}`);
    return permit;
  };
  const pass = (durationMs: number): void => void (nowMs += durationMs);
  return {
    permits,
    served,
    acquire,
    pass,
    /** One request that takes so long. */
    use: (accountId: number, lane: string, durationMs: number): void => {
      const permit = acquire(accountId, lane);
      pass(durationMs);
      permit.release();
    },
    /** Each that is served ends its request after so long, and the next one has its turn. */
    wait: (accountId: number, lane: string, durationMs = 0): void => {
      permits.wait({ accountId, lane }, () => {
        served.push(lane);
        const permit = permits.takeTurn({ accountId, lane });
        pass(durationMs);
        permit.release();
      });
    },
  };
}

describe('requesters that wait', () => {
  test('are served account by account, however many of one account came first', () => {
    const world = createWorld({ permitsMax: 1 });
    const held = world.acquire(9, 'held');
    for (const lane of ['a', 'b', 'c']) world.wait(1, lane, 10);
    world.wait(2, 'other account', 10);
    held.release();
    expect(world.served).toEqual(['a', 'other account', 'b', 'c']);
  });

  test('let others pass if a request of their account that ended meanwhile took long', () => {
    const world = createWorld({ permitsMax: 1 });
    world.use(2, 'other account', 20);
    const held = world.acquire(1, 'held');
    // By the time until now it comes before the other account.
    world.wait(1, 'same account');
    world.wait(2, 'other account');
    world.pass(1_000);
    held.release();
    expect(world.served).toEqual(['other account', 'same account']);
  });

  test('let other webhooks of their account pass if a request of their own took long', () => {
    const world = createWorld({ permitsMax: 1 });
    world.use(1, 'other', 20);
    const held = world.acquire(1, 'own');
    world.wait(1, 'own');
    world.wait(1, 'other');
    world.pass(1_000);
    held.release();
    expect(world.served).toEqual(['other', 'own']);
  });
});

describe('a share', () => {
  test('of a webhook that others have overtaken begins anew, however long its last request took', () => {
    const world = createWorld({ permitsMax: 3 });
    const overtaken = world.acquire(1, 'overtaken');
    for (let use = 0; use < 2; use++) world.use(1, 'goes on', 600);
    const goesOn = world.acquire(1, 'goes on');
    overtaken.release();
    // A new one is expected to take 5 ms, not the 1,200 of its last request.
    world.acquire(1, 'overtaken');
    world.use(1, 'had 7 ms', 7);
    world.acquire(2, 'other account');
    for (const lane of ['had 7 ms', 'overtaken']) world.wait(1, lane);
    goesOn.release();
    expect(world.served).toEqual(['overtaken', 'had 7 ms']);
  });

  describe('of a webhook in debt', () => {
    /** One of its webhooks has had much, another little, and other accounts come up to it. */
    function createDebt(otherMs: number, underWay: number) {
      const world = createWorld({ permitsMax: 2 });
      world.use(1, 'had much', 1_000);
      world.use(1, 'had little', 1);
      world.acquire(underWay, 'under way');
      world.use(2, 'other account', otherMs);
      const held = world.acquire(2, 'other account');
      return {
        ...world,
        leaveAndWait: (): void => {
          world.permits.wait({ accountId: 1, lane: 'leaves' }, () => {})();
          world.wait(1, 'had much');
          world.wait(1, 'had little');
          held.release();
        },
      };
    }

    test.each([1, 3_000])(
      'ends when its account is at rest and others have had as much (%i)',
      (otherMs) => {
        const world = createDebt(otherMs, 3);
        world.leaveAndWait();
        expect(world.served).toEqual(['had much', 'had little']);
      },
    );

    test('lasts while its account has something under way', () => {
      const world = createDebt(3_000, 1);
      world.leaveAndWait();
      expect(world.served).toEqual(['had little', 'had much']);
    });
  });
});

describe('a permit', () => {
  test('of a slow request comes back once, however often it is released', () => {
    const { permits, acquire, pass } = createWorld({ permitsMax: 1, slowMax: 2 });
    const hangs = acquire(1, 'hangs');
    pass(60);
    permits.wait({ accountId: 2, lane: 'well' }, () => {
      permits.takeTurn({ accountId: 2, lane: 'well' });
    });
    expect(permits.slowCount).toBe(1);
    hangs.release();
    hangs.release();
    expect(permits.slowCount).toBe(0);
  });

  describe('that becomes slow while others wait', () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());

    test('goes to the next soon, each time, by one timer for all that wait', () => {
      const { permits, acquire, pass } = createWorld({ permitsMax: 1, slowMax: 2 });
      acquire(1, 'hangs');
      let served = 0;
      for (const lane of ['first', 'second', 'third'])
        permits.wait({ accountId: 2, lane }, () => {
          permits.takeTurn({ accountId: 2, lane });
          served++;
        });
      expect(vi.getTimerCount()).toBe(1);
      for (const servedNow of [0, 0, 1, 1, 2]) {
        vi.advanceTimersByTime(LOOK_INTERVAL_MS);
        expect([served, vi.getTimerCount()]).toEqual([servedNow, 1]);
        pass(30);
      }
    });
  });
});
