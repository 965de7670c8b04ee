/** Drawing of the live tail takes a fifth of the page's time. */
import { expect, test } from 'vitest';
import { type DrawEffects, drawNowAndThen } from '../../src/tail/draw-now-and-then.ts';

/** A page whose draws take so long, over so many seconds. */
function drawsOf(tookMs: number, seconds: number, isNew = () => true) {
  let nowMs = 0;
  let due: { readonly atMs: number; readonly run: () => void } | undefined;
  let drawingMs = 0;
  const drawnAtMs: number[] = [];
  const effects: DrawEffects = {
    now: () => nowMs,
    afterPaint(run) {
      nowMs += tookMs;
      drawingMs += tookMs;
      run();
    },
    after(delayMs, run) {
      const own = { atMs: nowMs + delayMs, run };
      due = own;
      return () => {
        if (due === own) due = undefined;
      };
    },
  };
  const end = drawNowAndThen(() => {
    drawnAtMs.push(nowMs);
    return isNew();
  }, effects);
  const pass = (untilMs: number): void => {
    while (due && due.atMs <= untilMs) {
      const { atMs, run } = due;
      due = undefined;
      nowMs = Math.max(nowMs, atMs);
      run();
    }
  };
  pass(seconds * 1_000);
  return { drawnAtMs, share: drawingMs / nowMs, end, pass };
}

test('ten draws a second, if a draw is quick', () => {
  const { drawnAtMs } = drawsOf(20, 1);
  expect(drawnAtMs).toEqual([100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000]);
});

test.each([25, 70, 400])('a draw of %i ms takes a fifth of the time at most', (tookMs) => {
  const { share, drawnAtMs } = drawsOf(tookMs, 60);
  expect(share).toBeLessThanOrEqual(0.21);
  expect(drawnAtMs.length).toBeGreaterThanOrEqual(Math.floor((60_000 * 0.19) / tookMs));
});

test('however long a draw takes, the next begins two seconds after it at the latest', () => {
  const { drawnAtMs } = drawsOf(3_000, 60);
  expect(drawnAtMs.slice(0, 3)).toEqual([100, 5_100, 10_100]);
});

test('a look that finds no new line costs no draw, and the next comes after 0.1 s', () => {
  const { drawnAtMs, share } = drawsOf(70, 1, () => false);
  expect(share).toBe(0);
  expect(drawnAtMs.length).toBe(10);
});

test('the end is the end, also in the middle of a draw', () => {
  const looks = drawsOf(20, 1);
  looks.end();
  looks.pass(10_000);
  expect(looks.drawnAtMs.length).toBe(10);

  let painted: (() => void) | undefined;
  let waitCount = 0;
  const end = drawNowAndThen(() => true, {
    now: () => 0,
    afterPaint: (run) => (painted = run),
    after(_, run) {
      if (waitCount++ === 0) run();
      return () => undefined;
    },
  });
  end();
  painted?.();
  expect(waitCount).toBe(1);
});
