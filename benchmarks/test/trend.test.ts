import { describe, expect, it } from 'vitest';
import { afterWarmUp, fitTrend } from '../src/trend.ts';

const line = (valueAt: (seconds: number) => number, count = 90) =>
  Array.from({ length: count }, (_, place) => ({
    seconds: place * 20,
    value: valueAt(place * 20),
  }));

describe('a line through samples', () => {
  it('finds growth and its rate', () => {
    const { slope, first, last } = fitTrend(line((seconds) => 100 + seconds * 0.5));
    expect(slope).toBeCloseTo(0.5, 9);
    expect(first).toBeCloseTo(100, 9);
    expect(last).toBeCloseTo(100 + 89 * 20 * 0.5, 6);
  });

  it('calls a wave flat', () => {
    const { first, last } = fitTrend(line((seconds) => 100 + 20 * Math.sin(seconds / 40)));
    expect(last / first).toBeGreaterThan(0.95);
    expect(last / first).toBeLessThan(1.05);
  });

  it('does not see the warm-up that was left out', () => {
    const warming = line((seconds) => (seconds < 600 ? seconds : 600));
    expect(fitTrend(afterWarmUp(warming, 1 / 3)).slope).toBeCloseTo(0, 9);
    expect(fitTrend(warming).slope).toBeGreaterThan(0.1);
  });
});
