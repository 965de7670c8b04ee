/** Guarantees of wake-ups of delivery queues, as tests for any broker. */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { rangeOf, type LaneRange } from '@sluice/domain/wake-ups/lane-ranges';
import { expect, test, vi } from 'vitest';
import { DONE, WAIT_MS, type QueueUnderTest } from './queue-under-test.ts';

/** Called in a `describe`. */
export function testWakeUps(queue: QueueUnderTest): void {
  test('a hundred wake-ups of a sleeping lane are one; one that comes during the drain is kept', async () => {
    const lane: LaneKey = { environmentId: 1, webhookId: 7 };
    for (let n = 0; n < 100; n++) await queue.producer.wakeLane(lane);
    const woken: LaneKey[] = [];
    let letGo = () => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    await queue.consume({
      wakeLane: async (key) => {
        woken.push(key);
        if (woken.length === 1) await held;
        return DONE;
      },
    });
    await vi.waitFor(() => expect(woken).toHaveLength(1), WAIT_MS);
    for (let n = 0; n < 5; n++) await queue.producer.wakeLane(lane);
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
    for (let n = 0; n < 3; n++) await queue.producer.wakeLanes([...neighbours, other]);
    await queue.consume({
      wakeRange: async (range) => void ranges.push(range),
      wakeLane: (lane) => {
        woken.push(lane);
        return Promise.resolve(DONE);
      },
    });
    await vi.waitFor(() => expect([ranges, woken]).toEqual([[RANGE], [other]]), WAIT_MS);
    // Jobs run in their order, so an earlier one would have run before this one.
    const marker: LaneKey[] = neighbours.map((lane) => ({ ...lane, environmentId: 3 }));
    await queue.producer.wakeLanes(marker);
    await vi.waitFor(() => expect(ranges).toHaveLength(2), WAIT_MS);
    expect(ranges).toEqual([RANGE, { ...RANGE, environmentId: 3 }]);
    expect(woken).toEqual([other]);
  });

  test('a range that is woken while it is searched is searched again', async () => {
    await queue.producer.wakeLanes(neighbours);
    const ranges: LaneRange[] = [];
    const held = Promise.withResolvers<void>();
    await queue.consume({
      wakeRange: async (range) => {
        ranges.push(range);
        if (ranges.length === 1) await held.promise;
      },
    });
    await vi.waitFor(() => expect(ranges).toHaveLength(1), WAIT_MS);
    await queue.producer.wakeLanes(neighbours);
    await queue.producer.wakeRange(RANGE);
    held.resolve();
    await vi.waitFor(() => expect(ranges).toEqual([RANGE, RANGE]), WAIT_MS);
  });

  test('a search that fails ends neither its worker nor later searches', async () => {
    const ranges: LaneRange[] = [];
    const consumers = await queue.consume({
      wakeRange: async (range) => {
        ranges.push(range);
        if (ranges.length === 1) throw new Error('Postgres is away');
      },
    });
    await queue.producer.wakeLanes(neighbours);
    await vi.waitFor(() => expect(ranges).toHaveLength(1), WAIT_MS);
    await vi.waitFor(async () => {
      await queue.producer.wakeLanes(neighbours);
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
      await queue.consume({ wakeRange: hold(0) });
      await queue.producer.wakeLanes(many);
      await vi.waitFor(() => expect(taken[0]).toBe(4), WAIT_MS);
      await queue.consume({ wakeRange: hold(1) });
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
    await queue.consume({
      wakeLane: (key) => {
        woken.push(key);
        return Promise.resolve(DONE);
      },
    });
    await queue.producer.wakeLaneAt(lane, Date.now() + 3_600_000, Date.now());
    await queue.producer.wakeLaneAt(lane, Date.now() + 50, Date.now());
    await vi.waitFor(() => expect(woken).toEqual([lane]), WAIT_MS);
  });
}
