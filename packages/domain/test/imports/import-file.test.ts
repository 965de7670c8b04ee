import { describe, expect, test } from 'vitest';
import {
  readColumns,
  readImportRow,
  type ImportIdentifier,
} from '../../src/imports/import-file.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');

function columnsOf(...names: string[]) {
  const outcome = readColumns(names);
  if (outcome.outcome !== 'read') throw new Error(outcome.message);
  return outcome.columns;
}

const USUAL = columnsOf('_svc_name', '_svc_customer_id', '_svc_timestamp', 'colour', 'cart.total');

const read = (record: string[], identifier: ImportIdentifier = 'id', columns = USUAL) =>
  readImportRow(columns, record, {
    environmentId: 3,
    importId: 7,
    identifier,
    rowNumber: 12,
    receivedAtMs: NOW_MS,
  });

describe('the first line', () => {
  test.each([
    [['_svc_customer_id', 'a'], '_svc_name'],
    [['_svc_name', 'a'], '_svc_customer_id'],
    [['_SVC_NAME', '_svc_customer_id'], '_svc_name'],
    [['_svc_name', '_svc_customer_id', 'a', 'a'], '"a"'],
    [['_svc_name', '_svc_customer_id', ...Array.from({ length: 99 }, (_, n) => `c${n}`)], '101'],
    [['_svc_name', '_svc_customer_id', 'x'.repeat(151)], '150'],
    // Postgres refuses it, so the import would be tried again for a month.
    [['_svc_name', '_svc_customer_id', 'a\0b'], 'column 3 holds U+0000'],
  ])('%j is unusable, and the message names the fault', (record, named) => {
    const outcome = readColumns(record);
    expect(outcome.outcome).toBe('unusable');
    expect(outcome).toMatchObject({ message: expect.stringContaining(named) });
  });

  test('may have its columns in any order, without times, under the names of the older service', () => {
    const columns = columnsOf('a', '_cio_customer_id', '_cio_name');
    expect(read(['1', 'ann', 'bought'], 'id', columns).event).toMatchObject({
      name: 'bought',
      person: { kind: 'id', value: 'ann' },
      data: { a: '1' },
      occurredAtMs: NOW_MS,
    });
  });
});

describe('a row', () => {
  test('is an event: its properties are texts, dotted names are literal keys, and empty cells are left out', () => {
    expect(read([' bought ', 'ann', '2026-01-01 10:00:00', '', '42'])).toEqual({
      event: {
        type: 'event.track',
        environmentId: 3,
        receivedAtMs: NOW_MS,
        kind: 'event',
        person: { kind: 'id', value: 'ann' },
        eventId: 'import:7:12',
        name: 'bought',
        data: { 'cart.total': '42' },
        occurredAtMs: Date.parse('2026-01-01T10:00:00Z'),
        source: 'imports',
      },
      issues: [],
    });
  });

  test.each([
    ['1767261600', '2026-01-01T10:00:00Z'],
    ['2026-01-01T12:00:00+02:00', '2026-01-01T10:00:00Z'],
    ['2026-01-01 10:00:00', '2026-01-01T10:00:00Z'],
    ['', '2026-03-01T12:00:00Z'],
  ])('with the time %j happened at %s', (text, expected) => {
    expect(read(['a', 'b', text]).event?.occurredAtMs).toBe(Date.parse(expected));
  });

  test('with milliseconds for seconds is taken, with a warning', () => {
    const { event, issues } = read(['a', 'b', '1767261600000']);
    expect(event?.occurredAtMs).toBe(1_767_261_600_000);
    expect(issues).toMatchObject([{ code: 'timestamp_in_milliseconds', field: '_svc_timestamp' }]);
  });

  test.each([
    [['', 'ann'], 'required', '_svc_name'],
    [['x'.repeat(101), 'ann'], 'too_long', '_svc_name'],
    [['a', ' '], 'required', '_svc_customer_id'],
    [['a', 'x'.repeat(151)], 'too_long', '_svc_customer_id'],
    [['a'], 'required', '_svc_customer_id'],
    [['a', 'ann', 'yesterday'], 'invalid', '_svc_timestamp'],
    [['a', 'ann', '', '1', '2', '3'], 'invalid', null],
    [['a', 'ann', '', 'x'.repeat(70_000)], 'too_large', null],
  ])('%j is refused, and the column named', (record, code, field) => {
    const { event, issues } = read(record);
    expect(event).toBeUndefined();
    expect(issues).toMatchObject([{ code, field }]);
  });

  test('of a file by email must hold an email', () => {
    expect(read(['a', 'Ann@Example.com'], 'email').event?.person).toEqual({
      kind: 'email',
      value: 'Ann@Example.com',
    });
    expect(read(['a', 'ann'], 'email').issues).toMatchObject([
      { code: 'invalid', field: '_svc_customer_id' },
    ]);
  });

  test('with a column called __proto__ or with NUL changes only its own event', () => {
    const columns = columnsOf('_svc_name', '_svc_customer_id', '__proto__', 'a');
    const { event, issues } = read(['a', 'b', 'polluted', 'x\0y'], 'id', columns);
    expect(Object.hasOwn(event?.data ?? {}, '__proto__')).toBe(true);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(event?.data['a']).toBe('x\uFFFDy');
    expect(issues).toMatchObject([{ code: 'characters_replaced', field: 'a' }]);
  });
});
