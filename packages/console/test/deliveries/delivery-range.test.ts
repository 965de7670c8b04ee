/** Range of a list of deliveries, and of a link to it. */
import { expect, test } from 'vitest';
import { linkedQuery, withTimes } from '../../src/deliveries/delivery-range.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00.500Z');

test('a duration is read from a time on, and its end stays open', () => {
  expect(withTimes({ last: '1h', state: 'delivered' }, NOW_MS)).toEqual({
    since: '2026-03-01T11:00:00',
    state: 'delivered',
  });
});

test('a link has both ends of a duration as times, up to the latest row that was read', () => {
  const linked = { since: '2026-02-22T12:00:00', until: '2026-03-01T12:20:01', tz: 'local' };
  expect(linkedQuery({ last: '7d', tz: 'local' }, NOW_MS, NOW_MS + 1_200_000)).toEqual(linked);
  expect(linkedQuery(linked, NOW_MS + 1e9, NOW_MS + 1e9)).toEqual(linked);
});

test.each([{}, { last: '1h' }])('a link selects no deliveries for its reader: %j', (query) => {
  expect(linkedQuery({ ...query, selected: '1,2' }, NOW_MS, NOW_MS)).not.toHaveProperty('selected');
});

test.each([
  { since: '2026-03-01T10:00', last: '1h' },
  { until: '2026-03-01T10:00', last: '1h' },
])('times of an address come before its duration: %j', ({ last, ...times }) => {
  expect(withTimes({ last, ...times }, NOW_MS)).toEqual(times);
  expect(linkedQuery({ last, ...times }, NOW_MS, NOW_MS)).toEqual(times);
});
