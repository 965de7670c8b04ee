/** Simple calls on the fast path, and all other texts of clients. */
import { unpackOperation } from '@sluice/domain/operations/packed-event';
import { SEMANTIC_EVENT_NAMES } from '@sluice/domain/pipelines/semantic-events';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FastTrackParser } from '../../src/groups/fast-track-parser.ts';
import {
  AT_MS,
  bytesOf,
  eventIdOf,
  isParsedAlike,
  plain,
  queuedAt,
  text,
  ULID,
} from '../support/parsed-alike.ts';
import { damage, damaged, trackBatch, trackCall } from '../support/track-call-texts.ts';

describe('a simple call', () => {
  test.each([
    ['as the libraries send it', text()],
    ['with its own id', text({ messageId: 'node-next-1732-abc' })],
    ['with an anonymous id too', text({ anonymousId: 'a-1' })],
    ['of an email', text({ userId: 'Ada.L+x_1@mail.Example-1.COM' })],
    ['of the longest email', text({ userId: `${'a'.repeat(242)}@example.com` })],
    ['of somebody anonymous', text({ userId: null, anonymousId: 'a-1' })],
    ['without properties', text({ properties: undefined })],
    [
      'with null for nothing',
      text({ properties: null, timestamp: null, messageId: null, originalTimestamp: null }),
    ],
    ['without a time', text({ timestamp: undefined })],
    ['of the last day of a month', text({ timestamp: '2026-12-31T23:59:59.999Z' })],
    ['of a leap day', text({ timestamp: '2000-02-29T00:00:00.000Z' })],
    ['with a time to the second', text({ timestamp: '2024-02-28T23:59:59Z' })],
    ['with what is not read', text({ integrations: { All: true }, writeKey: 'k' })],
    ['sent by a clock that is right', text({ sentAt: '2026-11-20T00:00:00.500Z' })],
    ['sent by a clock that is ahead', text({ sentAt: '2026-11-20T10:00:01Z' })],
    ['sent by a clock that is behind', text({ sentAt: '2026-11-19T23:59:59.000Z' })],
    ['sent by a clock that is off by years', text({ sentAt: '2016-01-01T00:00:00Z' })],
    [
      'sent by a clock, without a time',
      text({ timestamp: undefined, sentAt: '2026-11-20T10:00:01Z' }),
    ],
    ['of nearly a year ahead', text({ timestamp: '2027-11-19T00:00:00Z' })],
    ['of a day behind the first second that is taken', text({ timestamp: '1973-03-04T09:46:40Z' })],
    [
      'with a text that has a t',
      text({ properties: { a: 'a sheet to be seen', b: '2026 tons of it' } }),
    ],
    ['with spaces and lines', JSON.stringify(plain, null, '\t').replaceAll('\n', ' \r\n')],
    [
      'with characters beyond ASCII in its properties',
      text({ properties: { größe: '€ 𝄞 é', deep: ['日本'] } }),
    ],
    ['with short escapes in its properties', text({ properties: { note: 'a "b" \\ c\n\t/' } })],
    [
      'with the longest id and name',
      text({
        userId: 'u'.repeat(150),
        event: 'e'.repeat(100),
        anonymousId: 'a'.repeat(150),
        messageId: 'm'.repeat(150),
      }),
    ],
    [
      'that has a key twice in its properties',
      '{"userId":"u","event":"e","properties":{"a":1,"a":{"__proto__":2}}}',
    ],
  ])('%s takes the fast path', (_, body) => {
    expect(isParsedAlike(bytesOf(body))).toBe(true);
  });

  test.each([
    ['an email of rare characters', text({ userId: "o'neil@example.com" })],
    ['an email that is too long', text({ userId: `${'a'.repeat(243)}@example.com` })],
    ['what is almost an email', text({ userId: 'a@example' })],
    ['an email of two parts', text({ userId: 'a@b@example.com' })],
    ['an email without a name', text({ userId: '@example.com' })],
    ['an email with an empty label', text({ userId: 'a@example..com' })],
    ['an email with a short ending', text({ userId: 'a@example.c' })],
    ['a svc_id', text({ userId: 'svc_0a1b2c3d' })],
    ['an id that is a number', text({ userId: 7 })],
    ['an id that is blank', text({ userId: '  ' })],
    ['an id that is too long', text({ userId: 'u'.repeat(151) })],
    ['nobody', text({ userId: undefined })],
    ['no event', text({ event: undefined })],
    ['a name that is trimmed', text({ event: 'Order ' })],
    ['a name that is too long', text({ event: 'e'.repeat(101) })],
    ['a name beyond ASCII', text({ event: 'Größe' })],
    ['an anonymous id that is too long', text({ anonymousId: 'a'.repeat(151) })],
    ['an event id that may be a ULID', text({ messageId: '01jd00000000000000000000zz' })],
    ['an event id that is too long', text({ messageId: 'm'.repeat(151) })],
    ['an id that is trimmed', text({ userId: 'user-1 ' })],
    ['an id with a blank beyond ASCII', text({ userId: '\u00a0user-1' })],
    ['an id with nothing visible at its end', text({ userId: 'user-1\u200b' })],
    ['an event id that is trimmed', text({ messageId: 'm ' })],
    [
      'a time that a correction may put before the first',
      text({ timestamp: '1973-03-04T09:46:39Z' }),
    ],
    [
      'a time that a correction may put more than a year ahead',
      text({ timestamp: '2027-11-19T00:00:01Z' }),
    ],
    ['a clock that cannot be read', text({ sentAt: '2026-11-20' })],
    ['a clock that is empty', text({ sentAt: '' })],
    ['an instant in small letters', text({ properties: { at: '2026-11-20t10:00:00z' } })],
    ['an instant in the basic form', text({ properties: { at: '20261120T1000Z' } })],
    [
      'an instant of many digits',
      text({ properties: { at: `2026-11-20T10:00:00.${'1'.repeat(40)}Z` } }),
    ],
    ['a time that is a number', text({ timestamp: 1_732_000_000 })],
    ['a time with an offset', text({ timestamp: '2026-11-20T10:00:00+02:00' })],
    ['a day that is not there', text({ timestamp: '2026-02-30T10:00:00Z' })],
    ['a leap day of a common year', text({ timestamp: '2100-02-29T10:00:00Z' })],
    ['a month of thirty days', text({ timestamp: '2026-11-31T10:00:00Z' })],
    ['a time before 1970', text({ timestamp: '1969-12-28T10:00:00Z' })],
    ['an hour that is not there', text({ timestamp: '2026-11-20T24:00:00Z' })],
    ['a clock that is to be put right', text({ originalTimestamp: '2026-11-20T10:00:00Z' })],
    ['properties that are a list', text({ properties: [1] })],
    ['an instant among the properties', text({ properties: { at: ['2026-11-20T10:00:00Z'] } })],
    ['a key twice', '{"userId":"u","event":"e","userId":"v"}'],
    ['a key in escapes', '{"user\\u0049d":"u","event":"e","anonymousId":"a"}'],
    ['half of a pair', '{"userId":"u","event":"e","properties":{"a":"\\ud800"}}'],
    ['a number with an exponent', '{"userId":"u","event":"e","properties":{"a":1e999}}'],
    ['a number of many digits', `{"userId":"u","event":"e","properties":{"a":${'9'.repeat(400)}}}`],
    ['a number that may be rounded', text({ properties: { order_id: 10 ** 15 } })],
    ['a number that begins with 0', '{"userId":"u","event":"e","properties":{"a":01}}'],
    ['more behind its end', `${text()} {}`],
    ['an end that is missing', text().slice(0, -1)],
    ['a comma too many', '{"userId":"u","event":"e",}'],
    ['a list', '[1]'],
    ['nothing', ''],
    [
      'a level too deep',
      text({ context: JSON.parse('['.repeat(200) + ']'.repeat(200)) as unknown }),
    ],
    ...SEMANTIC_EVENT_NAMES.map((event) => [`the event "${event}"`, text({ event })]),
  ])('with %s is declined', (_, body) => {
    expect(isParsedAlike(bytesOf(body))).toBe(false);
  });

  test.each([
    [0xc0, 0x80],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xe0, 0x9f, 0xbf],
    [0xf0, 0x8f, 0xbf, 0xbf],
    [0xe2, 0x82],
    [0xff],
    [0x1f],
  ])('with the bytes %i %i %i %i, which are no UTF-8, is declined', (...wrong) => {
    const bytes = Buffer.from(text({ properties: { a: '~~~~' } }));
    bytes.set(wrong, bytes.indexOf('~~~~'));
    expect(isParsedAlike(bytes)).toBe(false);
  });
});

test.each([
  ['track', trackCall, 6_000],
  ['batch', trackBatch, 3_000],
] as const)(
  'any body of a client is declined, or read as the slow path reads it: %s',
  (kind, bodies, numRuns) => {
    let parsedCount = 0;
    fc.assert(
      fc.property(
        bodies,
        damage,
        fc.constantFrom(1, 77, 2 ** 31 + 5),
        (body, damages, environmentId) => {
          if (isParsedAlike(damaged(bytesOf(body), damages), kind, environmentId)) parsedCount++;
        },
      ),
      { numRuns, seed: 20_261_122 },
    );
    expect(parsedCount).toBeGreaterThan(numRuns / 20);
  },
);

test('ids of events rise and never repeat, also when the clock stands still or goes back', () => {
  let nowMs = AT_MS;
  const own = new FastTrackParser();
  const batch = bytesOf(
    JSON.stringify({
      batch: Array.from({ length: 1_500 }, () => ({ type: 'track', userId: 'u', event: 'e' })),
    }),
  );
  const ids: string[] = [];
  for (const stepMs of [0, 0, 1, -5, 0, 3, 1, 0]) {
    nowMs += stepMs;
    const fastParsed = own.parse(batch, true, 1, nowMs);
    for (let index = 0; index < (fastParsed?.count ?? 0); index++) {
      ids.push(eventIdOf(unpackOperation(queuedAt(fastParsed!, index))));
    }
  }
  expect(ids).toHaveLength(8 * 1_500);
  expect(ids.every((id) => ULID.test(id))).toBe(true);
  expect(ids).toEqual([...new Set(ids)].toSorted());
});
