/** Progress of a command: one line on a terminal, JSON for a later reader. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { startProgress } from '../progress.mjs';

/** Goes to the start of the line, and removes it. */
const TO_THE_START = '\r\u001B[K';

function watched(terminal: { isTTY: boolean; columns?: number }, silentMs = 0) {
  const written: string[] = [];
  const clock = { nowMs: 0 };
  const output = { ...terminal, write: (text: string) => written.push(text) };
  const progress = startProgress('making a backup', 'tables', {
    silentMs,
    output,
    now: () => clock.nowMs,
  });
  return { written, clock, progress };
}

test('a log has JSON lines: the beginning, every five seconds, the end', () => {
  const { written, clock, progress } = watched({ isTTY: false });
  for (const done of [1, 2, 3, 4]) {
    clock.nowMs += 2_500;
    progress.report(done, 8);
  }
  progress.end('8 tables');
  const what = { progress: 'making a backup', unit: 'tables' };
  expect(written.map((line): unknown => JSON.parse(line))).toEqual([
    { ...what, state: 'began', elapsed_ms: 0 },
    { ...what, state: 'runs', done: 2, all: 8, elapsed_ms: 5_000 },
    { ...what, state: 'runs', done: 4, all: 8, elapsed_ms: 10_000 },
    { ...what, state: 'ended', done: 4, all: 8, elapsed_ms: 10_000, result: '8 tables' },
  ]);
  expect(written.every((line) => line.endsWith('\n'))).toBe(true);
});

test('a terminal has one line, no wider than it is', () => {
  const { written, clock, progress } = watched({ isTTY: true, columns: 40 });
  for (const done of [1, 2]) {
    clock.nowMs += 150;
    progress.report(done, 8);
  }
  progress.end();
  expect(written).toHaveLength(4);
  for (const text of written.slice(0, 3)) {
    const [before, line = ''] = text.split(TO_THE_START);
    expect([before, line.includes('\n')]).toEqual(['', false]);
    expect(line.length).toBeLessThan(40);
  }
  expect(written[1]).toContain('[######....');
  expect(written.slice(2).join('')).toBe(`${TO_THE_START}making a backup: done in 0 s\n`);
});

test('a command that may be over at once is silent until it takes long', () => {
  const quick = watched({ isTTY: false }, 2_000);
  quick.clock.nowMs += 1_999;
  quick.progress.report(7, 8);
  quick.progress.end();
  expect(quick.written).toEqual([]);

  const slow = watched({ isTTY: false }, 2_000);
  slow.clock.nowMs += 2_000;
  slow.progress.report(1, 8);
  slow.progress.end();
  expect(slow.written.map((line) => (JSON.parse(line) as { state: string }).state)).toEqual([
    'runs',
    'ended',
  ]);
});

test('a long command repeats its progress while the count stays the same, until its end', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { written, clock, progress } = watched({ isTTY: false }, 2_000);
  const pass = (durationMs: number): void => {
    clock.nowMs += durationMs;
    vi.advanceTimersByTime(durationMs);
  };
  progress.report(1, 8);
  for (let n = 0; n < 16; n++) pass(500);
  progress.end();
  pass(20_000);
  const lines = written.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.map(({ state, done, elapsed_ms: ms }) => [state, done, ms])).toEqual([
    ['runs', 1, 2_000],
    ['runs', 1, 7_000],
    ['ended', 1, 8_000],
  ]);
});

test('on a terminal its line makes way for a line of the result', () => {
  const shown = watched({ isTTY: true, columns: 40 });
  shown.progress.hide();
  shown.progress.end();
  expect(shown.written[1]).toBe(TO_THE_START);
  const logged = watched({ isTTY: false });
  logged.progress.hide();
  logged.progress.end();
  expect(logged.written).toHaveLength(2);
});
