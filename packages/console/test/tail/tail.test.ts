/** The live tail of the page: events as they are cut by the network, counts of all of them, rows that are kept. */
import { expect, test } from 'vitest';
import { parseEvents } from '../../src/client/server-events.ts';
import { ROW_COUNT_MAX, TailBuffer } from '../../src/tail/tail-buffer.ts';
import { detailText, personOf, personText, type TailLine } from '../../src/tail/tail-line.ts';

const line = (change: Partial<TailLine> = {}): TailLine => ({
  kind: 'received',
  at_ms: 0,
  outcome: 'accepted',
  name: 'Order',
  people: [{ id: 'ada' }],
  details: {},
  ...change,
});

test('events stay whole if the text is cut at any place, and comments are not events', () => {
  const text =
    ': listening\n\nevent: received\nid: a-1\ndata: {"n":1}\n\n: here\n\nevent: dropped\ndata: {"count":2}\n\n';
  for (let cut = 0; cut <= text.length; cut++) {
    const first = parseEvents(text.slice(0, cut));
    const second = parseEvents(first.rest + text.slice(cut));
    expect([...first.events, ...second.events]).toEqual([
      { type: 'received', data: '{"n":1}' },
      { type: 'dropped', data: '{"count":2}' },
    ]);
    expect(second.rest).toBe('');
  }
});

test('all lines are counted, the latest are kept, and memory is bounded', () => {
  const buffer = new TailBuffer();
  for (let count = 0; count < 3 * ROW_COUNT_MAX; count++)
    buffer.add([line(count % 10 === 0 ? { outcome: 'refused' } : {})]);
  buffer.add([
    { kind: 'dropped', count: 38 },
    { kind: 'dropped', count: null },
  ]);
  expect(buffer.counts()).toEqual({
    lineCount: 3 * ROW_COUNT_MAX,
    refusedCount: (3 * ROW_COUNT_MAX) / 10,
    droppedCount: 38,
  });
  expect(buffer.all()).toHaveLength(ROW_COUNT_MAX);
  expect(buffer.latest(2).map(({ number }) => number)).toEqual([
    3 * ROW_COUNT_MAX + 2,
    3 * ROW_COUNT_MAX + 1,
  ]);
  buffer.clear();
  expect([buffer.counts().lineCount, buffer.all().length]).toEqual([0, 0]);
});

test('a row shows its person and the details of its event', () => {
  expect(personText(line())).toBe('ada');
  expect(personText(line({ people: [] }))).toBe('–');
  expect(personOf(line({ people: [{ anonymous_id: 'x' }, { email: 'a@b.example' }] }))).toEqual({
    type: 'email',
    value: 'a@b.example',
  });
  const details = { webhook_id: 2, sequence: 1, status: null, failure: 'timeout', duration_ms: 7 };
  expect(detailText(line({ kind: 'reported', details }))).toBe('webhook 2 #1 timeout 7 ms');
  const refused = { code: 'invalid', field: 'event', message: 'event must be a string' };
  expect(detailText(line({ kind: 'refused', details: refused }))).toBe(
    'event: invalid · event must be a string',
  );
});
