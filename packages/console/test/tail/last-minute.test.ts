/** Calls of the last minute, as the overview counts them. */
import { expect, test } from 'vitest';
import { lastMinuteOf } from '../../src/tail/last-minute.ts';
import type { TailLine, TailRow } from '../../src/tail/tail-line.ts';

const NOW_MS = 1_000_000;
let number = 0;
const line = (agoMs: number, change: Partial<TailLine> = {}): TailRow => ({
  kind: 'received',
  at_ms: NOW_MS - agoMs,
  outcome: 'accepted',
  name: null,
  people: [],
  details: {},
  ...change,
  number: ++number,
});

test('calls of the last minute are counted, deliveries and older ones are not', () => {
  const rows = [
    line(60_000),
    line(59_999),
    line(10, { kind: 'refused', outcome: 'refused' }),
    line(5, { kind: 'reported', outcome: 'retrying' }),
    line(1, { kind: 'refused', outcome: 'rate_limited' }),
    line(0),
  ];
  expect(lastMinuteOf(rows, NOW_MS)).toEqual({ callCount: 4, refusedPercent: 50 });
  expect(lastMinuteOf([], NOW_MS)).toEqual({ callCount: 0, refusedPercent: 0 });
});

test('lines that the page could not read count by their place in the list', () => {
  const dropped = (count: number | null): TailRow => ({ kind: 'dropped', count, number: ++number });
  const rows = [dropped(7), line(70_000), dropped(38), dropped(null), line(1)];
  expect(lastMinuteOf(rows, NOW_MS).callCount).toBe(39);
});
