import { expect, test } from 'vitest';
import {
  address,
  eventId,
  instantSeconds,
  notEmpty,
  objectId,
  personIdentifier,
  port,
  positiveInteger,
} from '../src/input/arguments.ts';

/** A replay from a wrong time sends everything again. */
test.each([
  '1',
  '2026',
  'yesterday',
  '2026-11-20T10:00:00',
  '2026-02-30',
  '2026-02-30T00:00Z',
  '20.11.2026',
  '',
])('%j is no time', (text) =>
  expect(() => instantSeconds(text)).toThrow('It must be a time with its zone'),
);
test.each([
  ['2026-11-20T10:00:00Z', '2026-11-20T10:00:00Z'],
  ['2026-11-20T10:00+01:00', '2026-11-20T09:00:00Z'],
  ['2026-11-20T10:00:00.999Z', '2026-11-20T10:00:00Z'],
  ['2026-11-20', '2026-11-20T00:00:00Z'],
  ['2026-11-20t10:00:00z', '2026-11-20T10:00:00Z'],
  ['2026-11-20T24:00:00Z', '2026-11-21T00:00:00Z'],
  ['2026-11-20T23:59:60Z', '2026-11-21T00:00:00Z'],
  ['20261120T100000,5+0100', '2026-11-20T09:00:00Z'],
])('%s is a time', (text, same) => expect(instantSeconds(text)).toBe(Date.parse(same) / 1_000));

test.each(['0x1', '1e0', ' 1 ', '+1', '1.0', '0', '-1', '', '9007199254740993'])(
  '%j is no id',
  (text) => expect(() => positiveInteger(text)).toThrow('It must be an integer from 1.'),
);
test('a port is a number of one', () => {
  expect(port('0')).toBe(0);
  expect(() => port('0x50')).toThrow('from 0 to 65535');
});

test.each(['localhost:8090', 'ftp://x', 'x', ''])('%j is no address', (text) =>
  expect(() => address(text)).toThrow('It must be a URL'),
);
test.each(['http://a:b@x', 'http://x/?a', 'http://x/#a'])('%s has too much', (text) =>
  expect(() => address(text)).toThrow('no user, query or fragment'),
);
test('an address keeps its path and loses its last slash', () =>
  expect(address('https://x.example/sluice/')).toBe('https://x.example/sluice'));

test('an empty secret, as from an unset variable, is refused', () =>
  expect(() => notEmpty('')).toThrow('It must not be empty'));

test.each(['.', '..', ''])('%j is an event id that no path can name', (text) =>
  expect(() => eventId(text)).toThrow(text === '' ? 'must not be empty' : 'No path can name it'),
);
test.each([
  ['a person', personIdentifier],
  ['an object', objectId],
])('. and .. name %s in no path', (_, read) => {
  for (const text of ['.', '..', '']) expect(() => read(text)).toThrow(/No path can name|empty/);
  expect(read('...')).toBe('...');
});
test.each(['...', '.a', 'a/../b', '%2e%2e', '?', '#'])('%j is an event id', (text) => {
  expect(eventId(text)).toBe(text);
  const { pathname } = new URL(`http://x/v1/events/${encodeURIComponent(text)}/trace`);
  expect(decodeURIComponent(pathname.split('/')[3] ?? '')).toBe(text);
});
