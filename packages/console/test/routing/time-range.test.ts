/** Range of a list, and of a link to it. */
import { describe, expect, test } from 'vitest';
import {
  FROM_TO,
  linkedQuery,
  secondsOf,
  SINCE_UNTIL,
  withTimes,
} from '../../src/routing/time-range.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00.500Z');

describe.each([
  ['since and until, as fields write them', SINCE_UNTIL, ''],
  ['from and to, as the API writes them', FROM_TO, 'Z'],
])('%s', (_name, form, zone) => {
  const { from, to } = form;

  test('a duration is read from a time on, and its end stays open', () => {
    expect(withTimes({ last: '1h', state: 'delivered' }, NOW_MS, form)).toEqual({
      [from]: `2026-03-01T11:00:00${zone}`,
      state: 'delivered',
    });
  });

  test('a link has both ends of a duration as times, up to the latest row that was read', () => {
    const linked = {
      [from]: `2026-02-22T12:00:00${zone}`,
      [to]: `2026-03-01T12:20:01${zone}`,
      tz: 'local',
    };
    expect(linkedQuery({ last: '7d', tz: 'local' }, NOW_MS, NOW_MS + 1_200_000, form)).toEqual(
      linked,
    );
    expect(linkedQuery(linked, NOW_MS + 1e9, NOW_MS + 1e9, form)).toEqual(linked);
  });

  test.each([{}, { last: '1h' }])('a link selects no rows for its reader: %j', (query) => {
    expect(linkedQuery({ ...query, selected: '1,2' }, NOW_MS, NOW_MS, form)).not.toHaveProperty(
      'selected',
    );
  });

  test.each([from, to])('the %s of an address comes before its duration', (name) => {
    const times = { [name]: `2026-03-01T10:00:00${zone}` };
    expect(withTimes({ last: '1h', ...times }, NOW_MS, form)).toEqual(times);
    expect(linkedQuery({ last: '1h', ...times }, NOW_MS, NOW_MS, form)).toEqual(times);
  });
});

test.each([
  ['2026-02-28T23:59', '1772323140'],
  ['2024-02-29T00:00:01', '1709164801'],
  ['2026-02-30T00:00', undefined],
  ['2026-02-29T00:00:00', undefined],
  ['2026-13-01T00:00', undefined],
  ['1969-12-31T23:59', undefined],
  ['the ides of March', undefined],
  [undefined, undefined],
])('the time %s is %s in Unix seconds', (time, seconds) => {
  expect(secondsOf(time)).toBe(seconds);
});
