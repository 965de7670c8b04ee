import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fullBucket, RateLimiter, takeToken, type RatePolicy } from '../../src/auth/rate-limit.ts';

const POLICY: RatePolicy = { perSecond: 1_000, windowSeconds: 3 };

describe('a bucket', () => {
  test('takes its burst at once, and then one call for each that has grown', () => {
    const rates = new RateLimiter(POLICY, () => nowMs);
    let nowMs = 0;
    const limiter = {
      take: (environmentId: number, atMs: number) => {
        nowMs = atMs;
        return rates.take(environmentId);
      },
    };
    for (let n = 0; n < 3_000; n++) expect(limiter.take(1, 50).isTaken).toBe(true);
    expect(limiter.take(1, 50)).toEqual({
      isTaken: false,
      limit: 3_000,
      remaining: 0,
      resetSeconds: 3,
      retryAfterSeconds: 1,
    });
    expect(limiter.take(1, 51).isTaken).toBe(true);
    expect(limiter.take(1, 51).isTaken).toBe(false);
    // One call below full: not at once, so in a second.
    const standing = { isTaken: true, remaining: 2_999, resetSeconds: 1 };
    expect(limiter.take(1, 3_051)).toMatchObject(standing);
    expect(rates.refusedCount).toBe(2);
  });

  test('reports when it will take a call, and takes it then', () => {
    const slow = { perSecond: 1, windowSeconds: 5 };
    let bucket = { tokens: 0, atMs: 0 };
    const refused = takeToken(slow, bucket, 300);
    expect(refused.standing).toMatchObject({ isTaken: false, retryAfterSeconds: 1 });
    ({ bucket } = refused);
    expect(takeToken(slow, bucket, 300 + 1_000).standing.isTaken).toBe(true);
  });

  test('of one workspace is not filled or emptied by another', () => {
    const limiter = new RateLimiter({ perSecond: 1, windowSeconds: 1 }, () => 0);
    expect(limiter.take(1).isTaken).toBe(true);
    expect(limiter.take(1).isTaken).toBe(false);
    expect(limiter.take(2).isTaken).toBe(true);
  });

  test('never lets more calls through than its burst and its growth, also when the clock jumps', () => {
    const moments = fc.array(fc.integer({ min: -2_000, max: 2_000 }), { maxLength: 300 });
    const policies = fc.record({
      perSecond: fc.integer({ min: 1, max: 50 }),
      windowSeconds: fc.integer({ min: 1, max: 5 }),
    });
    fc.assert(
      fc.property(policies, moments, (policy, steps) => {
        let nowMs = 10_000_000;
        let latestMs = nowMs;
        let bucket = fullBucket(policy, nowMs);
        let takenCount = 0;
        for (const stepMs of steps) {
          nowMs += stepMs;
          latestMs = Math.max(latestMs, nowMs);
          const taken = takeToken(policy, bucket, nowMs);
          ({ bucket } = taken);
          if (taken.standing.isTaken) takenCount++;
          const burst = policy.perSecond * policy.windowSeconds;
          const grown = ((latestMs - 10_000_000) * policy.perSecond) / 1_000;
          expect(takenCount).toBeLessThanOrEqual(burst + grown + 1e-6);
          expect(bucket.tokens).toBeGreaterThanOrEqual(0);
          expect(taken.standing.remaining).toBeLessThanOrEqual(burst);
        }
      }),
    );
  });
});

test('the limiter counts by its monotonic clock alone, so setting the wall clock changes no count', () => {
  let nowMs = 0;
  const limiter = new RateLimiter({ perSecond: 10, windowSeconds: 1 }, () => nowMs);
  for (let n = 0; n < 10; n++) expect(limiter.take(1).isTaken).toBe(true);
  expect(limiter.take(1).isTaken).toBe(false);
  nowMs += 1_000;
  for (let n = 0; n < 10; n++) expect(limiter.take(1).isTaken).toBe(true);
  expect(limiter.take(1).isTaken).toBe(false);
});
