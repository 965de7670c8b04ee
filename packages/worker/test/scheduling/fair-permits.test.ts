import { describe, expect, test } from 'vitest';
import {
  FairPermits,
  type Permit,
  type PermitRequester,
} from '../../src/scheduling/fair-permits.ts';

/** Permits on a clock of their own, and requests whose length the test decides. */
function createWorld(options: { permitsMax: number; slowMax?: number; slowAfterMs?: number }) {
  let nowMs = 0;
  let busyMs = 0;
  const permits = new FairPermits({
    slowMax: 0,
    slowAfterMs: 1_000_000,
    ...options,
    monotonicNow: () => nowMs,
    idleTimeMs: () => nowMs - busyMs,
  });
  const running: { permit: Permit; endsAtMs: number }[] = [];
  const served: string[] = [];

  /** One lane that always has more to send, each request taking so long. */
  const keepBusy = (requester: PermitRequester, durationMs: number): void => {
    const begin = (permit: Permit): void => {
      served.push(`${requester.accountId}/${requester.lane}`);
      running.push({ permit, endsAtMs: nowMs + durationMs });
    };
    const ask = (): void => {
      const permit = permits.tryAcquire(requester);
      if (permit) begin(permit);
      else
        permits.wait(requester, () => {
          begin(permits.takeTurn(requester));
          ask();
        });
      if (permit) ask();
    };
    ask();
  };
  /** Lets requests end, in order, until the time. */
  const runUntil = (untilMs: number): void => {
    for (;;) {
      running.sort((a, b) => a.endsAtMs - b.endsAtMs);
      const next = running[0];
      if (!next || next.endsAtMs > untilMs) break;
      running.shift();
      nowMs = next.endsAtMs;
      next.permit.release();
    }
    nowMs = untilMs;
  };
  const countOf = (name: string) => served.filter((one) => one === name).length;
  const setNow = (atMs: number) => (nowMs = atMs);
  /** Time passes in which the process has no moment to spare. */
  const beBusy = (durationMs: number): void => {
    nowMs += durationMs;
    busyMs += durationMs;
  };
  return { permits, keepBusy, runUntil, served, countOf, setNow, beBusy };
}

describe('permits', () => {
  test('are for any requester while there are some, and come back', () => {
    const { permits } = createWorld({ permitsMax: 2 });
    const requester = { accountId: 1, lane: 'a' };
    const first = permits.tryAcquire(requester);
    expect(permits.tryAcquire(requester)).toBeDefined();
    expect(permits.tryAcquire({ accountId: 2, lane: 'b' })).toBeUndefined();
    first?.release();
    expect(permits.tryAcquire({ accountId: 2, lane: 'b' })).toBeDefined();
  });

  test('are shared between accounts, however many webhooks one of them has', () => {
    const world = createWorld({ permitsMax: 4 });
    for (let lane = 0; lane < 50; lane++) world.keepBusy({ accountId: 1, lane: `l${lane}` }, 10);
    world.keepBusy({ accountId: 2, lane: 'only' }, 10);
    world.runUntil(10_000);
    expect(world.countOf('2/only') / world.served.length).toBeGreaterThan(0.45);
    expect(world.countOf('2/only') / world.served.length).toBeLessThan(0.55);
  });

  test('are shared within an account by the time they are held: who is slow is served less often', () => {
    const world = createWorld({ permitsMax: 4 });
    world.keepBusy({ accountId: 1, lane: 'slow' }, 400);
    world.keepBusy({ accountId: 1, lane: 'quick' }, 4);
    world.runUntil(100_000);
    const ratio = (world.countOf('1/slow') * 400) / (world.countOf('1/quick') * 4);
    expect(ratio).toBeGreaterThan(0.7);
    expect(ratio).toBeLessThan(1.4);
  });

  test('serve a new requester before requesters that have had much', () => {
    const world = createWorld({ permitsMax: 2 });
    for (let lane = 0; lane < 20; lane++) world.keepBusy({ accountId: 1, lane: `l${lane}` }, 100);
    world.runUntil(5_000);
    const before = world.served.length;
    world.keepBusy({ accountId: 2, lane: 'new' }, 1);
    world.runUntil(5_100);
    expect(world.served.slice(before, before + 2)).toContain('2/new');
  });

  test('go to the next while a request is slow, as long as not too many are', () => {
    const world = createWorld({ permitsMax: 3, slowMax: 2, slowAfterMs: 50 });
    for (let request = 0; request < 3; request++)
      expect(world.permits.tryAcquire({ accountId: 1, lane: `hangs ${request}` })).toBeDefined();
    world.setNow(60);
    let served = 0;
    const serve = (): void => {
      world.permits.takeTurn({ accountId: 2, lane: 'well' });
      served++;
    };
    for (let request = 0; request < 3; request++)
      world.permits.wait({ accountId: 2, lane: 'well' }, serve);
    expect(served).toBe(2);
    expect(world.permits.slowCount).toBe(2);
    expect(world.permits.waitingCount).toBe(1);
  });

  test('that slow requests held come back when these end, also as places for further slow ones', () => {
    const world = createWorld({ permitsMax: 1, slowMax: 1, slowAfterMs: 50 });
    for (let round = 1; round <= 5; round++) {
      const hangs = world.permits.tryAcquire({ accountId: 1, lane: 'hangs' }) as Permit;
      expect(hangs).toBeDefined();
      world.setNow(round * 1_000);
      let served = 0;
      let next: Permit | undefined;
      world.permits.wait({ accountId: 2, lane: 'well' }, () => {
        served++;
        next = world.permits.takeTurn({ accountId: 2, lane: 'well' });
      });
      // The one place for slow requests is free in each round.
      expect([served, world.permits.slowCount, world.permits.heldCount]).toEqual([1, 1, 1]);
      hangs.release();
      expect([world.permits.slowCount, world.permits.heldCount]).toEqual([0, 1]);
      next?.release();
      expect([world.permits.slowCount, world.permits.heldCount]).toEqual([0, 0]);
    }
  });

  test('go to waiting requesters before new ones, for any number that come free', () => {
    const { permits } = createWorld({ permitsMax: 2 });
    const held = [1, 2].map((accountId) => permits.tryAcquire({ accountId, lane: 'a' }) as Permit);
    const served: number[] = [];
    const taken: Permit[] = [];
    const asksAnew: (Permit | undefined)[] = [];
    for (const accountId of [3, 4, 5])
      permits.wait({ accountId, lane: 'a' }, () => {
        // There may be a place, and somebody waits for it.
        asksAnew.push(permits.tryAcquire({ accountId: 9, lane: 'a' }));
        served.push(accountId);
        taken.push(permits.takeTurn({ accountId, lane: 'a' }));
      });
    for (const permit of held) permit.release();
    expect(served).toEqual([3, 4]);
    expect(permits.tryAcquire({ accountId: 9, lane: 'a' })).toBeUndefined();
    expect(permits.waitingCount).toBe(1);
    taken[0]?.release();
    expect(served).toEqual([3, 4, 5]);
    expect(asksAnew).toEqual([undefined, undefined, undefined]);
  });

  test('stay with a request that waits for a busy process, which does not make its endpoint slow', () => {
    const world = createWorld({ permitsMax: 1, slowMax: 10, slowAfterMs: 50 });
    const first = world.permits.tryAcquire({ accountId: 1, lane: 'a' });
    world.beBusy(500);
    let served = 0;
    world.permits.wait({ accountId: 2, lane: 'b' }, () => void served++);
    expect(served).toBe(0);
    expect(world.permits.slowCount).toBe(0);
    first?.release();
    expect(served).toBe(1);
  });

  test('are kept by a lane for a few turns in a row, charged as they are, and then go to the next', () => {
    const world = createWorld({ permitsMax: 1 });
    const permit = world.permits.tryAcquire({ accountId: 1, lane: 'a' }) as Permit;
    // Without a waiting requester it may renew without limit.
    for (let turn = 0; turn < 100; turn++) expect(permit.renew(world.permits)).toBe(true);
    const served: string[] = [];
    const requester = { accountId: 1, lane: 'b' };
    world.permits.wait(requester, () => {
      served.push('b');
      world.permits.takeTurn(requester);
    });
    expect(permit.renew(world.permits)).toBe(false);
    permit.release();
    permit.release();
    expect(served).toEqual(['b']);

    const other = createWorld({ permitsMax: 1 });
    const warm = other.permits.tryAcquire({ accountId: 1, lane: 'a' }) as Permit;
    other.permits.wait(requester, () => {});
    let turns = 1;
    while (warm.renew(other.permits)) turns++;
    expect(turns).toBe(16);
    // And for a quarter of a second.
    const slow = createWorld({ permitsMax: 1 });
    slow.setNow(1_000);
    const late = slow.permits.tryAcquire({ accountId: 1, lane: 'a' }) as Permit;
    slow.permits.wait(requester, () => {});
    slow.setNow(1_250);
    expect(late.renew(slow.permits)).toBe(true);
    slow.setNow(1_251);
    expect(late.renew(slow.permits)).toBe(false);
  });

  test('that are renewed are charged for each of their turns', () => {
    const { permits, setNow } = createWorld({ permitsMax: 2 });
    const acquire = (lane: string) => permits.tryAcquire({ accountId: 1, lane }) as Permit;
    const renewing = acquire('renews');
    const other = acquire('had less');
    for (let turn = 1; turn <= 5; turn++) {
      setNow(turn * 100);
      expect(renewing.renew(permits)).toBe(true);
      if (turn === 3) other.release();
    }
    setNow(600);
    renewing.release();
    const held = acquire('held');
    acquire('held too');
    const served: string[] = [];
    for (const lane of ['renews', 'had less'])
      permits.wait({ accountId: 1, lane }, () => void served.push(lane));
    held.release();
    expect(served[0]).toBe('had less');
  });

  test('of one kind are not kept for the other', () => {
    const { permits } = createWorld({ permitsMax: 1 });
    const { permits: probes } = createWorld({ permitsMax: 1 });
    const permit = permits.tryAcquire({ accountId: 1, lane: 'a' }) as Permit;
    expect(permit.renew(probes)).toBe(false);
    expect(permits.heldCount).toBe(1);
  });

  test('come to the others if one breaks on its turn', () => {
    const { permits } = createWorld({ permitsMax: 1 });
    const held = permits.tryAcquire({ accountId: 1, lane: 'a' });
    permits.wait({ accountId: 1, lane: 'b' }, () => {
      throw new Error('broken');
    });
    expect(() => held?.release()).toThrow('broken');
    const requester = { accountId: 2, lane: 'c' };
    const next = permits.tryAcquire(requester);
    expect(next).toBeDefined();
    let hasCome = false;
    permits.wait(requester, () => (hasCome = true));
    next?.release();
    expect(hasCome).toBe(true);
  });

  test('are not given to a requester that has left', () => {
    const { permits } = createWorld({ permitsMax: 1 });
    const permit = permits.tryAcquire({ accountId: 1, lane: 'a' });
    const served: string[] = [];
    const leave = permits.wait({ accountId: 2, lane: 'b' }, () => void served.push('b'));
    const leaveLate = permits.wait({ accountId: 3, lane: 'c' }, () => void served.push('c'));
    // Of the same account, which must not lose its turn with it.
    permits.wait({ accountId: 2, lane: 'd' }, () => void served.push('d'));
    leave();
    leave();
    expect(permits.waitingCount).toBe(2);
    permit?.release();
    expect(served.toSorted()).toEqual(['c', 'd']);
    leaveLate();
    expect(permits.waitingCount).toBe(0);
  });

  test.each([1, 2])(
    'are charged to a webhook that has %i also if it gave up a wait for more meanwhile',
    (count) => {
      const { permits, setNow } = createWorld({ permitsMax: count + 1 });
      const acquire = (lane: string) => permits.tryAcquire({ accountId: 1, lane }) as Permit;
      const slow = Array.from({ length: count }, () => acquire('slow'));
      // The others have had more than the slow one was expected to have.
      for (const atMs of [20, 40]) {
        const permit = acquire('quick');
        setNow(atMs);
        permit.release();
      }
      const quick = acquire('quick');
      const leave = permits.wait({ accountId: 1, lane: 'slow' }, () => {});
      leave();
      setNow(1_000);
      for (const permit of slow) permit.release();
      for (const lane of ['a', 'b'].slice(0, count)) acquire(lane);
      const served: string[] = [];
      for (const lane of ['slow', 'new'])
        permits.wait({ accountId: 1, lane }, () => void served.push(lane));
      quick.release();
      expect(served[0]).toBe('new');
    },
  );

  test('are not given to one who asks anew before one who waits, if its account had waited once before', () => {
    const { permits, setNow } = createWorld({ permitsMax: 2 });
    const acquire = (accountId: number, lane: string) =>
      permits.tryAcquire({ accountId, lane }) as Permit;
    const held = [acquire(2, 'b'), acquire(2, 'b')];
    permits.wait({ accountId: 1, lane: 'hangs' }, () => {
      permits.takeTurn({ accountId: 1, lane: 'hangs' });
    });
    setNow(5);
    held[0]?.release();
    held[1]?.release();
    // Others have much while the request hangs.
    let nowMs = 5;
    for (let use = 0; use < 20; use++) {
      const permit = acquire(2, 'b');
      setNow((nowMs += 5));
      permit.release();
    }
    const last = acquire(2, 'b');
    const served: string[] = [];
    for (const [accountId, lane] of [
      [3, 'waits'],
      [1, 'asks anew'],
    ] as const)
      permits.wait({ accountId, lane }, () => {
        served.push(lane);
        permits.takeTurn({ accountId, lane });
      });
    last.release();
    expect(served).toEqual(['waits']);
  });

  test('keep one in debt waiting for a while, not for ever', () => {
    const world = createWorld({ permitsMax: 1 });
    const debtor = { accountId: 1, lane: 'debtor' };
    const held = world.permits.tryAcquire(debtor);
    world.setNow(60_000);
    held?.release();
    world.keepBusy({ accountId: 2, lane: 'other' }, 10);
    world.keepBusy(debtor, 10);
    world.runUntil(61_500);
    expect(world.countOf('1/debtor')).toBe(0);
    world.runUntil(63_000);
    expect(world.countOf('1/debtor')).toBeGreaterThan(0);
  });
});
