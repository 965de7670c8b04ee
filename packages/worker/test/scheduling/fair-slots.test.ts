import { describe, expect, test } from 'vitest';
import { FairSlots, type Slot, type SlotAsker } from '../../src/scheduling/fair-slots.ts';

/** Slots on a clock of their own, and requests that take as long as the test says. */
function createWorld(options: { slotsMax: number; slowMax?: number; slowAfterMs?: number }) {
  let nowMs = 0;
  let busyMs = 0;
  const slots = new FairSlots({
    slowMax: 0,
    slowAfterMs: 1_000_000,
    ...options,
    monotonicNow: () => nowMs,
    spareMs: () => nowMs - busyMs,
  });
  const running: { slot: Slot; endsAtMs: number }[] = [];
  const served: string[] = [];

  /** One lane that always has more to send, each request taking so long. */
  const keepBusy = (asker: SlotAsker, durationMs: number): void => {
    const begin = (slot: Slot): void => {
      served.push(`${asker.accountId}/${asker.lane}`);
      running.push({ slot, endsAtMs: nowMs + durationMs });
    };
    const ask = (): void => {
      const slot = slots.tryTake(asker);
      if (slot) begin(slot);
      else
        slots.wait(asker, () => {
          begin(slots.takeTurn(asker));
          ask();
        });
      if (slot) ask();
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
      next.slot.giveBack();
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
  return { slots, keepBusy, runUntil, served, countOf, setNow, beBusy };
}

describe('slots', () => {
  test('are for whoever asks while there are some, and come back', () => {
    const { slots } = createWorld({ slotsMax: 2 });
    const asker = { accountId: 1, lane: 'a' };
    const first = slots.tryTake(asker);
    expect(slots.tryTake(asker)).toBeDefined();
    expect(slots.tryTake({ accountId: 2, lane: 'b' })).toBeUndefined();
    first?.giveBack();
    expect(slots.tryTake({ accountId: 2, lane: 'b' })).toBeDefined();
  });

  test('are shared between accounts, however many webhooks one of them has', () => {
    const world = createWorld({ slotsMax: 4 });
    for (let lane = 0; lane < 50; lane++) world.keepBusy({ accountId: 1, lane: `l${lane}` }, 10);
    world.keepBusy({ accountId: 2, lane: 'only' }, 10);
    world.runUntil(10_000);
    expect(world.countOf('2/only') / world.served.length).toBeGreaterThan(0.45);
    expect(world.countOf('2/only') / world.served.length).toBeLessThan(0.55);
  });

  test('are shared within an account by the time they are held: who is slow is served less often', () => {
    const world = createWorld({ slotsMax: 4 });
    world.keepBusy({ accountId: 1, lane: 'slow' }, 400);
    world.keepBusy({ accountId: 1, lane: 'quick' }, 4);
    world.runUntil(100_000);
    const ratio = (world.countOf('1/slow') * 400) / (world.countOf('1/quick') * 4);
    expect(ratio).toBeGreaterThan(0.7);
    expect(ratio).toBeLessThan(1.4);
  });

  test('serve whoever comes new before those who have had much', () => {
    const world = createWorld({ slotsMax: 2 });
    for (let lane = 0; lane < 20; lane++) world.keepBusy({ accountId: 1, lane: `l${lane}` }, 100);
    world.runUntil(5_000);
    const before = world.served.length;
    world.keepBusy({ accountId: 2, lane: 'new' }, 1);
    world.runUntil(5_100);
    expect(world.served.slice(before, before + 2)).toContain('2/new');
  });

  test('go to the next while a request is slow, as long as not too many are', () => {
    const world = createWorld({ slotsMax: 3, slowMax: 2, slowAfterMs: 50 });
    for (let request = 0; request < 3; request++)
      expect(world.slots.tryTake({ accountId: 1, lane: `hangs ${request}` })).toBeDefined();
    world.setNow(60);
    let served = 0;
    const serve = (): void => {
      world.slots.takeTurn({ accountId: 2, lane: 'well' });
      served++;
    };
    for (let request = 0; request < 3; request++)
      world.slots.wait({ accountId: 2, lane: 'well' }, serve);
    expect(served).toBe(2);
    expect(world.slots.slowCount).toBe(2);
    expect(world.slots.waitingCount).toBe(1);
  });

  test('stay with a request that waits for a busy process: that says nothing of its endpoint', () => {
    const world = createWorld({ slotsMax: 1, slowMax: 10, slowAfterMs: 50 });
    const first = world.slots.tryTake({ accountId: 1, lane: 'a' });
    world.beBusy(500);
    let served = 0;
    world.slots.wait({ accountId: 2, lane: 'b' }, () => void served++);
    expect(served).toBe(0);
    expect(world.slots.slowCount).toBe(0);
    first?.giveBack();
    expect(served).toBe(1);
  });

  test('are kept by a lane for a few turns in a row, charged as they are, and then go to the next', () => {
    const world = createWorld({ slotsMax: 1 });
    const slot = world.slots.tryTake({ accountId: 1, lane: 'a' }) as Slot;
    // Nobody waits: as often as it likes.
    for (let turn = 0; turn < 100; turn++) expect(slot.renew(world.slots)).toBe(true);
    const served: string[] = [];
    const asker = { accountId: 1, lane: 'b' };
    world.slots.wait(asker, () => {
      served.push('b');
      world.slots.takeTurn(asker);
    });
    expect(slot.renew(world.slots)).toBe(false);
    slot.giveBack();
    slot.giveBack();
    expect(served).toEqual(['b']);

    const other = createWorld({ slotsMax: 1 });
    const warm = other.slots.tryTake({ accountId: 1, lane: 'a' }) as Slot;
    other.slots.wait(asker, () => {});
    let turns = 1;
    while (warm.renew(other.slots)) turns++;
    expect(turns).toBe(16);
    const slow = createWorld({ slotsMax: 1 });
    const late = slow.slots.tryTake({ accountId: 1, lane: 'a' }) as Slot;
    slow.slots.wait(asker, () => {});
    slow.setNow(251);
    expect(late.renew(slow.slots)).toBe(false);
  });

  test('of one kind are not kept for the other', () => {
    const { slots } = createWorld({ slotsMax: 1 });
    const { slots: probes } = createWorld({ slotsMax: 1 });
    const slot = slots.tryTake({ accountId: 1, lane: 'a' }) as Slot;
    expect(slot.renew(probes)).toBe(false);
    expect(slots.heldCount).toBe(1);
  });

  test('come to the others where one breaks on its turn', () => {
    const { slots } = createWorld({ slotsMax: 1 });
    const held = slots.tryTake({ accountId: 1, lane: 'a' });
    slots.wait({ accountId: 1, lane: 'b' }, () => {
      throw new Error('broken');
    });
    expect(() => held?.giveBack()).toThrow('broken');
    const asker = { accountId: 2, lane: 'c' };
    const next = slots.tryTake(asker);
    expect(next).toBeDefined();
    let hasCome = false;
    slots.wait(asker, () => (hasCome = true));
    next?.giveBack();
    expect(hasCome).toBe(true);
  });

  test('are not given to who has left', () => {
    const { slots } = createWorld({ slotsMax: 1 });
    const slot = slots.tryTake({ accountId: 1, lane: 'a' });
    const served: string[] = [];
    const leave = slots.wait({ accountId: 2, lane: 'b' }, () => void served.push('b'));
    slots.wait({ accountId: 3, lane: 'c' }, () => void served.push('c'));
    leave();
    slot?.giveBack();
    expect(served).toEqual(['c']);
    expect(slots.waitingCount).toBe(0);
  });

  test('keep one in debt waiting for a while, not for ever', () => {
    const world = createWorld({ slotsMax: 1 });
    const debtor = { accountId: 1, lane: 'debtor' };
    const held = world.slots.tryTake(debtor);
    world.setNow(60_000);
    held?.giveBack();
    world.keepBusy({ accountId: 2, lane: 'other' }, 10);
    world.keepBusy(debtor, 10);
    world.runUntil(61_500);
    expect(world.countOf('1/debtor')).toBe(0);
    world.runUntil(63_000);
    expect(world.countOf('1/debtor')).toBeGreaterThan(0);
  });
});
