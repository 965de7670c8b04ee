import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ANSWER_DELAY_MS_MAX, nextAnswerDelayMs } from '../../src/operations/answer-delay.ts';

const after = (delayMs: number, unappliedCount: number, isProgressing = true) =>
  nextAnswerDelayMs(delayMs, { unappliedCount, isProgressing });

test('workers that keep up put nothing off', () => {
  expect(after(0, 0)).toBe(0);
  expect(after(0, 1)).toBe(0);
});

test('a longer queue puts answers off longer, from the first look on, and never past a second', () => {
  expect(after(0, 10)).toBeGreaterThan(after(0, 4));
  expect(after(0, 4)).toBeGreaterThan(0);
  expect(after(950, 4)).toBe(ANSWER_DELAY_MS_MAX);
  expect(after(0, 1e9)).toBe(ANSWER_DELAY_MS_MAX);
});

test('where workers apply nothing, as during an outage, nobody waits for them', () => {
  expect(after(500, 1_000, false)).toBe(0);
});

test('whatever it was, it is gone 240 looks after the queue is', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: ANSWER_DELAY_MS_MAX, noNaN: true }), (delayMs) => {
      let left = delayMs;
      for (let looks = 0; looks < 240; looks++) left = after(left, 0);
      expect(left).toBe(0);
    }),
  );
});

/**
 * Batches of 50 from so many connections, answers 5 ms without the delay; four shards, of which workers apply 15,000 events
 * a second; a look each 50 ms; a commit batch has 1,000.
 */
test('a sender of any number of connections becomes as fast as the workers, and no slower than half of that', () => {
  fc.assert(
    fc.property(fc.integer({ min: 4, max: 256 }), (connectionCount) => {
      let delayMs = 0;
      let unapplied = 0;
      let applied = 0;
      let longest = 0;
      for (let look = 0; look < 600; look++) {
        const before = unapplied + (connectionCount * 2.5) / (5 + delayMs);
        unapplied = Math.max(0, before - 0.75);
        if (look >= 200) {
          applied += before - unapplied;
          longest = Math.max(longest, unapplied);
        }
        delayMs = after(delayMs, Math.ceil(unapplied / 4));
      }
      expect(applied / 400 / 0.75).toBeGreaterThan(0.5);
      // Of more than 150 connections a second's delay is just enough, and the first burst stays for a while.
      expect(longest).toBeLessThan(connectionCount > 150 ? 150 : 20);
    }),
  );
});
