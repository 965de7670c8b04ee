/** Calls of the last minute, as the overview counts them. */
import { expect, test } from 'vitest';
import { ROW_COUNT_MAX, TailBuffer } from '../../src/tail/tail-buffer.ts';
import type { DroppedLines, TailLine } from '../../src/tail/tail-line.ts';

const NOW_MS = 1_000_000;
const line = (agoMs: number, change: Partial<TailLine> = {}): TailLine => ({
  kind: 'received',
  at_ms: NOW_MS - agoMs,
  outcome: 'accepted',
  name: null,
  people: [],
  details: {},
  ...change,
});

const countsOf = (rows: readonly (TailLine | DroppedLines)[]) => {
  const buffer = new TailBuffer();
  buffer.open(NOW_MS - 60_000);
  buffer.add(rows);
  return buffer.lastMinute(NOW_MS);
};

test('calls of the last minute are counted, deliveries and older ones are not', () => {
  const rows = [
    line(60_000),
    line(59_000),
    line(10, { kind: 'refused', outcome: 'refused' }),
    line(5, { kind: 'reported', outcome: 'retrying' }),
    line(1, { kind: 'refused', outcome: 'rate_limited' }),
    line(0),
  ];
  expect(countsOf(rows)).toEqual({ callCount: 4, refusedPercent: 50, spanMs: 60_000 });
  expect(countsOf([])).toEqual({ callCount: 0, refusedPercent: 0, spanMs: 60_000 });
});

test('lines that the page could not read count by their place in the list', () => {
  const dropped = (count: number | null): DroppedLines => ({ kind: 'dropped', count });
  const rows = [dropped(7), line(70_000), dropped(38), dropped(null), line(1)];
  expect(countsOf(rows).callCount).toBe(39);
});

test('a minute with more calls than the page keeps rows is counted whole', () => {
  const rows = Array.from({ length: 4 * ROW_COUNT_MAX }, (_, place) =>
    line(place % 59_000, place % 4 === 0 ? { kind: 'refused', outcome: 'refused' } : {}),
  );
  expect(countsOf(rows)).toMatchObject({ callCount: 4 * ROW_COUNT_MAX, refusedPercent: 25 });
});

test('a tail that opens again counts from then on, and its span begins then', () => {
  const buffer = new TailBuffer();
  expect(buffer.lastMinute(NOW_MS).spanMs).toBe(0);
  buffer.open(NOW_MS - 90_000);
  buffer.add([line(30_000)]);
  expect(buffer.lastMinute(NOW_MS)).toMatchObject({ callCount: 1, spanMs: 60_000 });
  buffer.open(NOW_MS - 5_000);
  expect(buffer.lastMinute(NOW_MS)).toMatchObject({ callCount: 0, spanMs: 5_000 });
  buffer.add([line(1_000)]);
  expect(buffer.lastMinute(NOW_MS)).toMatchObject({ callCount: 1, spanMs: 5_000 });
});

test('a page that stays open for a day counts the last minute alone', () => {
  const buffer = new TailBuffer();
  for (let agoSeconds = 86_400; agoSeconds >= 0; agoSeconds--)
    buffer.add([line(agoSeconds * 1_000)]);
  expect(buffer.lastMinute(NOW_MS).callCount).toBe(60);
  buffer.clear();
  expect(buffer.lastMinute(NOW_MS).callCount).toBe(0);
});
