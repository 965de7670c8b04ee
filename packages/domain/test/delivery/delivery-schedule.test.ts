import type { DeliveryFailure } from '@sluice/domain/delivery/delivery-failure';
import {
  backoffMs,
  GIVE_UP_AFTER_MS_DEFAULT,
  judgeFailure,
  longestWaitMs,
  NEVER_ATTEMPTED,
  type DeliveryPolicy,
  type RetryState,
} from '@sluice/domain/delivery/delivery-schedule';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const policy: DeliveryPolicy = {
  listedFailureWaitMs: HOUR_MS,
  backoffBaseMs: 10_000,
  backoffCapMs: HOUR_MS,
  giveUpAfterMs: 7 * DAY_MS,
};

const refused: DeliveryFailure = { failure: 'connection_refused', status: null };
const unavailable: DeliveryFailure = { failure: 'status', status: 503 };
const notFound: DeliveryFailure = { failure: 'status', status: 404 };

/** The waits between attempts that fail at once, as long as the delivery is tried. */
function waitsOf(failures: Iterable<DeliveryFailure>, chance = 0.999_999): number[] {
  const waits: number[] = [];
  let retry: RetryState = NEVER_ATTEMPTED;
  let atMs = 1_000_000;
  for (const failure of failures) {
    const verdict = judgeFailure(retry, { ...failure, startedAtMs: atMs }, atMs, policy, chance);
    if (verdict.outcome === 'abandoned') return waits;
    waits.push(Math.round((verdict.nextAttemptAtMs - atMs) / 1000));
    retry = verdict.retry;
    atMs = verdict.nextAttemptAtMs;
  }
  return waits;
}

/** More often than any delivery is tried. */
const always = (failure: DeliveryFailure): DeliveryFailure[] =>
  Array.from({ length: 1_000 }, () => failure);

describe('the waits', () => {
  test('after a listed failure: one hour exactly, then exponential', () => {
    expect(waitsOf([notFound, notFound, notFound, notFound, refused])).toEqual([
      3600, 10, 20, 40, 80,
    ]);
  });

  test('after any other failure: exponential straight away, up to the cap', () => {
    expect(waitsOf(Array.from({ length: 11 }, () => unavailable))).toEqual([
      10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600,
    ]);
  });

  test('a listed failure waits its hour also when others came before it, once', () => {
    expect(waitsOf([unavailable, unavailable, refused, notFound, unavailable])).toEqual([
      10, 20, 3600, 40, 80,
    ]);
  });

  test('the listed hour is exact for every random value', () => {
    for (const chance of [0, 0.5, 0.999]) expect(waitsOf([refused], chance)).toEqual([3600]);
  });

  test.each([
    ['a later one', unavailable, 120, 120],
    ['an earlier one', unavailable, 2, 10],
    ['one of the past', unavailable, -50, 10],
    ['more than an hour', unavailable, 100_000, 3600],
    ['none that shortens the hour of the list', notFound, 60, 3600],
    ['an hour at most after a listed one too', notFound, 7_200, 3600],
  ])('Retry-After moves the next attempt to %s', (_, failure, afterS, expectedS) => {
    const attempt = { ...failure, startedAtMs: 0, retryAfterMs: 1_000 + afterS * 1000 };
    const verdict = judgeFailure(NEVER_ATTEMPTED, attempt, 1_000, policy, 0.999_999);
    if (verdict.outcome !== 'retrying') throw new Error(verdict.outcome);
    expect(Math.round((verdict.nextAttemptAtMs - 1_000) / 1000)).toBe(expectedS);
  });

  test('Retry-After counts on an exponential step later in life too, and never past the giving up', () => {
    const retry = {
      attempts: 9,
      firstAttemptAtMs: 0,
      hasWaitedListed: true,
      backoffSteps: 1,
    };
    const judge = (endedAtMs: number, retryAfterMs: number) =>
      judgeFailure(
        retry,
        { ...notFound, startedAtMs: endedAtMs, retryAfterMs },
        endedAtMs,
        policy,
        0,
      );
    expect(judge(5_000, 305_000)).toMatchObject({ nextAttemptAtMs: 305_000 });
    const lateMs = policy.giveUpAfterMs - 60_000;
    expect(judge(lateMs, lateMs + 600_000)).toMatchObject({
      nextAttemptAtMs: policy.giveUpAfterMs,
    });
  });

  test.each([
    ['for the hour of a listed failure', notFound, undefined, 5_000 + HOUR_MS],
    ['until Retry-After', unavailable, 65_000, 65_000],
    ['until Retry-After, at most for an hour', unavailable, 2 * HOUR_MS, 5_000 + HOUR_MS],
    ['until Retry-After, at most until the giving up', unavailable, HOUR_MS, 30 * 60_000],
    ['no longer after any other failure', unavailable, undefined, -Infinity],
  ])('the endpoint rests %s', (_, failure, retryAfterMs, restsUntilMs) => {
    const giveUpAfterMs = retryAfterMs === HOUR_MS ? 30 * 60_000 : policy.giveUpAfterMs;
    const attempt = { ...failure, startedAtMs: 0, retryAfterMs };
    expect(
      judgeFailure(NEVER_ATTEMPTED, attempt, 5_000, { ...policy, giveUpAfterMs }, 0),
    ).toMatchObject({ outcome: 'retrying', restsUntilMs });
  });

  test('chance shortens an exponential wait by at most half, and waits never get shorter', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), {
          minLength: 12,
          maxLength: 12,
        }),
        (chances) => {
          const waits = chances.map((chance, index) => backoffMs(index + 1, policy, chance));
          waits.forEach((waitMs, index) => {
            const fullMs = Math.min(10_000 * 2 ** index, HOUR_MS);
            expect(waitMs).toBeGreaterThanOrEqual(fullMs / 2);
            expect(waitMs).toBeLessThanOrEqual(fullMs);
            if (fullMs < HOUR_MS) expect(waitMs).toBeGreaterThanOrEqual(waits[index - 1] ?? 0);
          });
        },
      ),
    );
  });

  test('count from the end of the attempt', () => {
    const verdict = judgeFailure(
      NEVER_ATTEMPTED,
      { ...notFound, startedAtMs: 1_000 },
      5_000,
      policy,
      0,
    );
    expect(verdict).toMatchObject({ outcome: 'retrying', nextAttemptAtMs: 5_000 + HOUR_MS });
  });
});

test('the longest wait is the larger of the listed hour and the cap, and at most the time until the end', () => {
  expect(longestWaitMs({ ...policy, backoffCapMs: HOUR_MS / 2 })).toBe(HOUR_MS);
  expect(longestWaitMs({ ...policy, backoffCapMs: 2 * HOUR_MS })).toBe(2 * HOUR_MS);
  expect(longestWaitMs({ ...policy, giveUpAfterMs: 5 })).toBe(5);
});

describe('giving up', () => {
  test.each([
    ['a listed failure', notFound],
    ['any other failure', unavailable],
  ])(
    'after %s: seven days from the first attempt, with a last attempt at the end',
    (_, failure) => {
      const totalSeconds = waitsOf(always(failure)).reduce((sum, wait) => sum + wait, 0);
      expect(totalSeconds).toBe(7 * 24 * 3600);
    },
  );

  test('never happens before seven days, and always at the first failure after them', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 8 * DAY_MS }), fc.nat(5), (ageMs, steps) => {
        const firstAttemptAtMs = 1_700_000_000_000;
        const retry = {
          attempts: steps + 1,
          firstAttemptAtMs,
          hasWaitedListed: true,
          backoffSteps: steps,
        };
        const endedAtMs = firstAttemptAtMs + ageMs;
        const verdict = judgeFailure(
          retry,
          { ...refused, startedAtMs: endedAtMs - 1 },
          endedAtMs,
          policy,
          0.5,
        );
        expect(verdict.outcome).toBe(ageMs >= 7 * DAY_MS ? 'abandoned' : 'retrying');
        if (verdict.outcome === 'retrying') {
          expect(verdict.nextAttemptAtMs).toBeGreaterThan(endedAtMs);
          expect(verdict.nextAttemptAtMs).toBeLessThanOrEqual(firstAttemptAtMs + 7 * DAY_MS);
        }
      }),
    );
  });

  test('counts from the first attempt, not from the latest', () => {
    const first = judgeFailure(NEVER_ATTEMPTED, { ...refused, startedAtMs: 0 }, 100, policy, 0);
    const second = judgeFailure(
      first.retry,
      { ...refused, startedAtMs: HOUR_MS },
      HOUR_MS,
      policy,
      0,
    );
    expect(second.retry).toEqual({
      attempts: 2,
      firstAttemptAtMs: 0,
      hasWaitedListed: true,
      backoffSteps: 1,
    });
  });
});

test('by default a delivery is given up seven days after its first attempt', () => {
  const usual = { ...policy, giveUpAfterMs: GIVE_UP_AFTER_MS_DEFAULT };
  const tried: RetryState = { ...NEVER_ATTEMPTED, attempts: 5, firstAttemptAtMs: 0 };
  const outcomeAt = (atMs: number) =>
    judgeFailure(tried, { ...unavailable, startedAtMs: atMs }, atMs, usual, 0.5).outcome;
  expect(outcomeAt(7 * DAY_MS - 1)).not.toBe('abandoned');
  expect(outcomeAt(7 * DAY_MS)).toBe('abandoned');
});
