import { expect, test } from 'vitest';
import { afterPiece, FIRST_FETCH_MINUTE, type FetchMinute } from '../../src/imports/fetch-pace.ts';

/** Pieces of one size, each after one wait. @returns the seconds after which the fetch is too slow, if it ever is. */
function secondsUntilTooSlow(waitSeconds: number, sizeBytes: number): number | undefined {
  let minute: FetchMinute | undefined = FIRST_FETCH_MINUTE;
  for (let seconds = waitSeconds; seconds <= 7_200; seconds += waitSeconds) {
    minute = afterPiece(minute, { waitedMs: waitSeconds * 1_000, sizeBytes });
    if (minute === undefined) return seconds;
  }
  return undefined;
}

test.each([
  { waitSeconds: 50, sizeBytes: 1, seconds: 200 },
  { waitSeconds: 59, sizeBytes: 65_535 / 2, seconds: 236 },
  { waitSeconds: 1, sizeBytes: 1_000, seconds: 120 },
])(
  'a server that sends $sizeBytes bytes each $waitSeconds s is too slow after $seconds s',
  ({ waitSeconds, sizeBytes, seconds }) => {
    expect(secondsUntilTooSlow(waitSeconds, sizeBytes)).toBe(seconds);
  },
);

test.each([
  { waitSeconds: 1, sizeBytes: 1_100 },
  { waitSeconds: 30, sizeBytes: 32_768 },
  // A burst after each pause.
  { waitSeconds: 59, sizeBytes: 65_536 },
])(
  'a server that sends $sizeBytes bytes each $waitSeconds s is fast enough for as long as it sends',
  ({ waitSeconds, sizeBytes }) => {
    expect(secondsUntilTooSlow(waitSeconds, sizeBytes)).toBeUndefined();
  },
);

test('the first minute is not judged, so a small file may come slowly', () => {
  const minute = afterPiece(FIRST_FETCH_MINUTE, { waitedMs: 60_000, sizeBytes: 1 });
  expect(minute).toEqual({ isFirst: false, waitedMs: 0, sizeBytes: 0 });
});
