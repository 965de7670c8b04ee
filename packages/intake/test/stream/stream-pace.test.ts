import { expect, test } from 'vitest';
import { StreamPace } from '../../src/stream/stream-pace.ts';

const MEBIBYTE = 1_048_576;

/** Seconds until a stream of pieces has been read, with a clock that only the waits move. */
function secondsOf(pieces: number, sizeBytes: number, lineCount: number): number {
  let nowMs = 5_000;
  const pace = new StreamPace(() => nowMs);
  for (let piece = 0; piece < pieces; piece++) {
    pace.spend(sizeBytes, lineCount);
    nowMs += Math.max(0, pace.waitMs());
  }
  return (nowMs - 5_000) / 1_000;
}

test('a gibibyte of blank lines is read in half an hour: lines count, blank ones too', () => {
  expect(secondsOf(16_384, 65_536, 65_536)).toBeGreaterThan(2_000);
});

test('bytes without lines are read at 64 MB a second', () => {
  expect(secondsOf(1_024, MEBIBYTE, 0)).toBeCloseTo(16, 0);
});

test('200,000 lines a second of 200 bytes each never wait', () => {
  let nowMs = 0;
  const pace = new StreamPace(() => nowMs);
  for (let piece = 0; piece < 1_000; piece++) {
    pace.spend(200 * 200, 200);
    expect(pace.waitMs()).toBeLessThanOrEqual(0);
    nowMs += 1;
  }
});

test('a stream that was slow is ahead by a tenth of a second at most', () => {
  let nowMs = 0;
  const pace = new StreamPace(() => nowMs);
  nowMs = 3_600_000;
  pace.spend(64 * MEBIBYTE, 0);
  expect(pace.waitMs()).toBeCloseTo(900, 0);
});

test('a wait ends with the pace, and sooner where it is over', async () => {
  let nowMs = 0;
  const pace = new StreamPace(() => nowMs);
  const waits: number[] = [];
  const pause = (durationMs: number): Promise<void> => {
    waits.push(durationMs);
    nowMs += durationMs;
    return Promise.resolve();
  };
  pace.spend(64 * MEBIBYTE, 0);
  await pace.wait(pause, () => nowMs > 120);
  expect(waits).toEqual([50, 50, 50]);
  await pace.wait(pause, () => false);
  expect(nowMs).toBeGreaterThan(899);
  expect(nowMs).toBeLessThan(901);
});
