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
  test('are served one after the other by the end of one request, however many they are', () => {
    const world = createWorld({ permitsMax: 1 });
    const held = world.acquire(1, 'held');
    for (let account = 1; account <= 20_000; account++) world.wait(account, 'a');
    held.release();
    expect(world.served).toHaveLength(20_000);
    expect([world.permits.waitingCount, world.permits.heldCount]).toEqual([0, 0]);
  });

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
    for (const lane of ['new', 'own', 'other']) world.wait(1, lane);
    world.pass(1_000);
    held.release();
    expect(world.served).toEqual(['new', 'other', 'own']);
  });
});

describe('a share', () => {
  test('does not save up a rest: webhooks that had little are served in the order in which they came', () => {
    const world = createWorld({ permitsMax: 1 });
    world.use(1, 'rested', 10);
    for (let use = 0; use < 2; use++) world.use(1, 'busy', 100);
    const held = world.acquire(1, 'busy');
    for (const lane of ['rested', 'new']) world.wait(1, lane);
    held.release();
    expect(world.served).toEqual(['rested', 'new']);
  });

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
  test('that is renewed is charged for the time of each turn once', () => {
    const world = createWorld({ permitsMax: 3 });
    const renewed = world.acquire(1, 'had 300 ms');
    const other = world.acquire(1, 'had 400 ms');
    const held = world.acquire(2, 'held');
    for (let turn = 1; turn <= 3; turn++) {
      world.pass(100);
      if (turn < 3) expect(renewed.renew(world.permits)).toBe(true);
      else renewed.release();
    }
    world.pass(100);
    other.release();
    for (let use = 0; use < 2; use++) world.acquire(2, 'held too');
    for (const lane of ['had 400 ms', 'had 300 ms']) world.wait(1, lane);
    held.release();
    expect(world.served).toEqual(['had 300 ms', 'had 400 ms']);
  });

  test('that is renewed is slow by the time of its last turn', () => {
    const world = createWorld({ permitsMax: 1, slowMax: 1 });
    const renewed = world.acquire(1, 'renewed');
    world.pass(40);
    expect(renewed.renew(world.permits)).toBe(true);
    world.pass(40);
    world.wait(2, 'waits');
    expect([world.served, world.permits.slowCount]).toEqual([[], 0]);
    renewed.release();
    expect(world.served).toEqual(['waits']);
  });

  test('that is renewed is expected to be held for as long as on its turn before', () => {
    const world = createWorld({ permitsMax: 3 });
    const renewed = world.acquire(1, 'renewed');
    const other = world.acquire(1, 'other');
    const held = world.acquire(2, 'held');
    world.pass(1_000);
    expect(renewed.renew(world.permits)).toBe(true);
    world.pass(500);
    other.release();
    world.acquire(2, 'held too');
    // It has had 1,000 ms, and is about to have as much again; the other one has had 1,500.
    for (const lane of ['renewed', 'other']) world.wait(1, lane);
    held.release();
    expect(world.served).toEqual(['other', 'renewed']);
  });

  test('of a slow request is not renewed, and comes back once, however often it is released', () => {
    const { permits, acquire, pass } = createWorld({ permitsMax: 1, slowMax: 2 });
    const hangs = acquire(1, 'hangs');
    pass(60);
    permits.wait({ accountId: 2, lane: 'well' }, () => {
      permits.takeTurn({ accountId: 2, lane: 'well' });
    });
    expect(permits.slowCount).toBe(1);
    // Its place is the other's now.
    expect(hangs.renew(permits)).toBe(false);
    expect([permits.slowCount, permits.heldCount]).toEqual([1, 1]);
    hangs.release();
    hangs.release();
    expect(permits.slowCount).toBe(0);
  });

  test.each([
    [49, []],
    [50, ['waits']],
  ])('goes to the next after 50 ms, and not before (%i ms)', (durationMs, served) => {
    const world = createWorld({ permitsMax: 1, slowMax: 1 });
    world.acquire(1, 'hangs');
    world.pass(durationMs);
    world.wait(2, 'waits');
    expect(world.served).toEqual(served);
  });

  test('stays with a slow request while another one is free', () => {
    const world = createWorld({ permitsMax: 2, slowMax: 1 });
    world.acquire(1, 'hangs');
    world.pass(60);
    world.wait(2, 'well');
    expect([world.served, world.permits.slowCount]).toEqual([['well'], 0]);
  });

  describe('that becomes slow while others wait', () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());

    test('is looked for only while somebody waits', () => {
      const { permits, acquire } = createWorld({ permitsMax: 1, slowMax: 2 });
      const held = acquire(1, 'held');
      permits.wait({ accountId: 2, lane: 'waits' }, () => {
        permits.takeTurn({ accountId: 2, lane: 'waits' });
      });
      held.release();
      expect([permits.heldCount, permits.waitingCount]).toEqual([1, 0]);
      vi.advanceTimersByTime(LOOK_INTERVAL_MS);
      expect(vi.getTimerCount()).toBe(0);
    });

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
