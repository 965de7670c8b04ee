/** Delivery queues that are woken together: no queue is left out, and few queues cost no search. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LaneKey } from '../../src/wake-ups/lane-key.ts';
import {
  LANES_A_RANGE,
  rangeOf,
  wakeUpsOf,
  WOKEN_TOGETHER_MIN,
  type LaneRange,
} from '../../src/wake-ups/lane-ranges.ts';

const neighbours = (environmentId: number, firstWebhookId: number, count: number): LaneKey[] =>
  Array.from({ length: count }, (_, place) => ({
    environmentId,
    webhookId: firstWebhookId + place,
  }));

const isIn = ({ environmentId, webhookId }: LaneKey, range: LaneRange): boolean =>
  environmentId === range.environmentId &&
  webhookId >= range.firstWebhookId &&
  webhookId <= range.lastWebhookId;

test('ten thousand webhooks of a workspace are woken by forty wake-ups', () => {
  const { ranges, alone } = wakeUpsOf(neighbours(7, 1, 10_000));
  expect(ranges).toHaveLength(Math.ceil(10_001 / LANES_A_RANGE));
  expect(alone).toEqual([]);
});

test('few webhooks of a range are woken one by one, also beside many of another workspace', () => {
  const few = neighbours(8, 1, WOKEN_TOGETHER_MIN - 1);
  const { ranges, alone } = wakeUpsOf([...neighbours(7, 1, WOKEN_TOGETHER_MIN), ...few]);
  expect(ranges).toEqual([{ environmentId: 7, firstWebhookId: 0, lastWebhookId: 255 }]);
  expect(alone).toEqual(few);
});

test('a webhook that is named often does not count as many', () => {
  const often = Array.from({ length: 100 }, () => ({ environmentId: 7, webhookId: 3 }));
  expect(wakeUpsOf(often).ranges).toEqual([]);
});

test('every webhook is woken, once, by a range of its workspace or by itself', () => {
  const lanes = fc.array(
    fc.record({
      environmentId: fc.integer({ min: 1, max: 3 }),
      webhookId: fc.integer({ min: 1, max: 3 * LANES_A_RANGE }),
    }),
    { maxLength: 400, size: 'max' },
  );
  fc.assert(
    fc.property(lanes, (woken) => {
      const { ranges, alone } = wakeUpsOf(woken);
      for (const lane of woken) {
        const byRange = ranges.filter((range) => isIn(lane, range));
        const isAlone = alone.some(
          ({ environmentId, webhookId }) =>
            environmentId === lane.environmentId && webhookId === lane.webhookId,
        );
        expect(byRange.length + Number(isAlone)).toBe(1);
        expect(isIn(lane, rangeOf(lane))).toBe(true);
      }
    }),
  );
});
