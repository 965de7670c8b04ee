/** Percentiles from counts by class. */
import { expect, test } from 'vitest';
import {
  LATENCY_BOUNDS_MS,
  LATENCY_CLASS_COUNT,
  latencyClassOf,
  latencyPercentileMs,
} from '../../src/delivery/latency-counts.ts';

const countsOf = (durationsMs: readonly number[]): number[] => {
  const counts = Array.from({ length: LATENCY_CLASS_COUNT }, () => 0);
  for (const durationMs of durationsMs) counts[latencyClassOf(durationMs)]! += 1;
  return counts;
};

test('each duration is in the class whose bounds it is between', () => {
  expect([0, 1, 2, 3, 4, 5, 8_192, 8_193, 1e9].map(latencyClassOf)).toEqual([
    0, 0, 1, 2, 2, 3, 13, 14, 14,
  ]);
});

test('a percentile is within the class of the exact one', () => {
  const durationsMs = Array.from({ length: 1_000 }, (_, n) => 1 + ((n * 7_919) % 997));
  const sorted = durationsMs.toSorted((a, b) => a - b);
  for (const share of [0.01, 0.5, 0.9, 0.99, 1]) {
    const exact = sorted[Math.ceil(share * sorted.length) - 1]!;
    const told = latencyPercentileMs(countsOf(durationsMs), share)!;
    const place = latencyClassOf(exact);
    expect(told).toBeGreaterThanOrEqual(LATENCY_BOUNDS_MS[place - 1] ?? 0);
    expect(told).toBeLessThanOrEqual(LATENCY_BOUNDS_MS[place]!);
  }
});

test('empty counts have no percentile, and a value beyond all classes is reported as their end', () => {
  expect(latencyPercentileMs(countsOf([]), 0.5)).toBeUndefined();
  expect(latencyPercentileMs(countsOf([60_000]), 0.5)).toBe(8_192);
});
