/** An uploaded file of events on a real Postgres: the results of its rows, and their issues. */
import { ALL_NAMES, type EventMinute } from '@sluice/database/maintenance/minute-statistics';
import type { TailLine } from '@sluice/domain/operations/tail';
import { identify, suppress } from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { MinuteStatistics } from '../../../src/process/minute-statistics.ts';
import { ImportsWorld } from '../support/imports-world.ts';

let world: ImportsWorld;
beforeEach(async () => {
  world = await ImportsWorld.create();
});

describe('an uploaded file', () => {
  test('gives its people their events, and reports the fault of every other row', async () => {
    await world.people('ann', 'bob', 'gone');
    await world.process(suppress('id:gone'));
    const key = await world.upload(
      [
        '\uFEFF_svc_name,_svc_customer_id,_svc_timestamp,cart.total,note',
        'bought,ann,2026-01-01 10:00:00,42,"two\nlines, ""quoted"""',
        'bought,nobody,,1,',
        ',bob,,1,',
        'bought,gone,,1,',
        '',
        'looked,bob,1767261600000,,',
        'late,bob,sometime,,',
      ].join('\r\n'),
    );
    const statistics = new MinuteStatistics(() => world.nowMs);
    const countRows = statistics.countRows.bind(statistics);
    expect(await world.run({ countRows })).toBe(true);
    const minutes: EventMinute[] = [];
    await statistics.write(async (events) => void minutes.push(...events));
    // For the charts of the workspace, like the events of calls.
    expect(minutes).toMatchObject([
      { environmentId: 1, name: ALL_NAMES, accepted: 2, refused: 4 },
      { environmentId: 1, name: 'bought', accepted: 1, refused: 0 },
      { environmentId: 1, name: 'looked', accepted: 1, refused: 0 },
      { environmentId: 1, name: 'imports', accepted: 0, refused: 4 },
    ]);
    expect(await world.shown(key)).toMatchObject({
      state: 'imported',
      rowsRead: 6,
      rowsImported: 2,
      rowsFailed: 4,
      rowsWarned: 1,
      error: null,
    });
    expect(await world.events()).toEqual([
      {
        name: 'bought',
        eventId: `import:${key.importId}:1`,
        id: 'ann',
        data: { 'cart.total': '42', note: 'two\nlines, "quoted"' },
      },
      { name: 'looked', eventId: `import:${key.importId}:5`, id: 'bob', data: {} },
    ]);
    expect(await world.problems(key, 'error')).toMatchObject([
      { rowNumber: 2, column: '_svc_customer_id', code: 'person_not_found' },
      { rowNumber: 3, column: '_svc_name', code: 'required', record: ['', 'bob', '', '1', ''] },
      { rowNumber: 4, column: '_svc_customer_id', code: 'suppressed' },
      { rowNumber: 6, column: '_svc_timestamp', code: 'invalid' },
    ]);
    expect(await world.problems(key, 'warning')).toMatchObject([
      { rowNumber: 5, code: 'timestamp_in_milliseconds' },
    ]);
    // No person was made, and the bytes are gone.
    const { rows } = await sql`select id from people where environment_id = 1`.execute(
      world.database,
    );
    expect(rows).toHaveLength(2);
    expect(await world.chunkCount()).toBe(0);
    expect(await world.run()).toBe(false);
  });

  test('by email finds people in either letter case, and by no other identifier', async () => {
    await world.process(identify('id:ann', { email: 'Ann@Example.com' }));
    const key = await world.upload(
      '_svc_name,_svc_customer_id\na,ANN@example.com\nb,ann@other.example\n',
      { identifier: 'email' },
    );
    await world.run();
    expect(await world.shown(key)).toMatchObject({ rowsImported: 1, rowsFailed: 1 });
    expect(await world.events()).toMatchObject([{ name: 'a', id: 'ann' }]);
  });

  test('of one workspace cannot name people of another', async () => {
    await world.people('ann');
    const key = await world.upload('_svc_name,_svc_customer_id\na,ann\n', { environmentId: 2 });
    await world.run();
    expect(await world.shown(key)).toMatchObject({
      state: 'imported',
      rowsImported: 0,
      rowsFailed: 1,
    });
    expect(await world.events()).toEqual([]);
  });

  test.each([
    ['', 'empty'],
    ['a,b\n1,2\n', '_svc_name'],
    ['_svc_name,_svc_customer_id\na,"b\n', 'never closed'],
    ['_svc_name,_svc_customer_id\na,b"c\n', 'quote'],
    ['_svc_name,_svc_customer_id,a\0b\na,b,c\n', 'column 3 holds U+0000'],
    [`_svc_name,_svc_customer_id${','.repeat(20_000)}\na,b\n`, '16384 cells'],
  ])('%j fails with its reason', async (text, reason) => {
    const key = await world.upload(text);
    await world.run();
    expect(await world.shown(key)).toMatchObject({
      state: 'failed',
      error: expect.stringContaining(reason),
    });
    expect(await world.chunkCount()).toBe(0);
  });

  test('in an encoding that nobody declared is refused with row and byte, and read where somebody did', async () => {
    await world.people('ann');
    const file = Buffer.from(
      `_svc_name,_svc_customer_id,city\n${'bought,ann,Bonn\n'.repeat(2_000)}${'Caf\xe9,ann,Z\xfcrich\n'.repeat(300)}`,
      'latin1',
    );
    const refused = await world.upload(file);
    await world.run();
    expect(await world.shown(refused)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/^row 2002 has the byte 0xe9 at byte 32035 of the file/),
      // No row at all, or a corrected file that is sent again would be there twice.
      rowsImported: 0,
    });
    expect(await world.events()).toEqual([]);
    const read = await world.upload(file, { encoding: 'windows-1252' });
    await world.run();
    expect(await world.shown(read)).toMatchObject({ state: 'imported', rowsImported: 2_300 });
    expect(await world.events()).toContainEqual(
      expect.objectContaining({ name: 'Café', data: { city: 'Zürich' } }),
    );
  });

  test('in UTF-8 with wrong bytes is read, except for the rows that have one', async () => {
    await world.people('ann');
    const file = Buffer.concat([
      Buffer.from('_svc_name,_svc_customer_id,city\nGenève,ann,Genève\nbought,ann,'),
      Buffer.of(0xff),
      Buffer.from('\nZürich,ann,Bonn\n'),
    ]);
    const key = await world.upload(file);
    await world.run();
    expect(await world.shown(key)).toMatchObject({
      state: 'imported',
      rowsImported: 2,
      rowsFailed: 1,
    });
    expect(await world.problems(key, 'error')).toMatchObject([
      {
        severity: 'error',
        rowNumber: 2,
        message: expect.stringMatching(/^row 3 has the byte 0xff at byte 63 of the file/),
      },
    ]);
    const names = (await world.events()).map((event) => (event as { name: string }).name);
    expect(names.toSorted()).toEqual(['Genève', 'Zürich']);
  });

  test('in ASCII with a wrong byte, and other line ends than its names have, is read except for that row', async () => {
    await world.people('ann');
    const file = Buffer.from(
      '_svc_name,_svc_customer_id\nbought,ann\rso\xffld,ann\rlooked,ann\r',
      'latin1',
    );
    const key = await world.upload(file);
    await world.run();
    expect(await world.shown(key)).toMatchObject({
      state: 'imported',
      rowsImported: 2,
      rowsFailed: 1,
    });
    expect(await world.problems(key, 'error')).toMatchObject([
      {
        rowNumber: 2,
        message: expect.stringMatching(/^row 3 has the byte 0xff at byte 40 of the file/),
      },
    ]);
  });

  test('is UTF-8 if all of it is valid UTF-8, and has the declared encoding if only its beginning is', async () => {
    await world.people('ann');
    const start = '_svc_name,_svc_customer_id,city\nÉté™,ann,Zürich\n';
    const valid = await world.upload(start, { encoding: 'iso-8859-1' });
    await world.run();
    expect(await world.shown(valid)).toMatchObject({
      state: 'imported',
      fileForm: { encoding: 'utf-8' },
    });
    expect(await world.events()).toMatchObject([{ name: 'Été™', data: { city: 'Zürich' } }]);
    const rows = 'CAFÉ™,ann,\n'.repeat(8_000);
    const bytes = Buffer.concat([
      Buffer.from('_svc_name,_svc_customer_id,city\n'),
      // In Windows-1252 these two are valid UTF-8 by chance.
      Buffer.from(rows.replaceAll('™', '\x99'), 'latin1'),
      Buffer.from('Caf\xe9,ann,\n', 'latin1'),
    ]);
    const begun = await world.upload(bytes, { encoding: 'windows-1252' });
    await world.run();
    expect(await world.shown(begun)).toMatchObject({
      state: 'imported',
      rowsImported: 8_001,
      fileForm: { encoding: 'windows-1252' },
    });
    const names = (await world.events()).map((event) => (event as { name: string }).name);
    expect(new Set(names)).toEqual(new Set(['Été™', 'CAFÉ™', 'Café']));
  });

  test('in UTF-16 with semicolons is read, its empty columns left out', async () => {
    await world.people('ann');
    const text =
      'sep=;\r\n_svc_name;_svc_customer_id;größe;\r\nbought;ann;ü;\r\nlooked;ann;;;;\r\n';
    const key = await world.upload(Buffer.from(`\ufeff${text}`, 'utf16le'));
    await world.run();
    expect(await world.shown(key)).toMatchObject({
      state: 'imported',
      rowsImported: 2,
      fileForm: { encoding: 'utf-16le', separator: ';', rowEnd: 'newline', linesBefore: 1 },
    });
    expect(await world.events()).toMatchObject([
      { name: 'bought', data: { größe: 'ü' } },
      { name: 'looked', data: {} },
    ]);
  });

  test('a value in a column without a name is an error of its row', async () => {
    await world.people('ann');
    const key = await world.upload('_svc_name,_svc_customer_id,\na,ann,\nb,ann,lost\n');
    await world.run();
    expect(await world.shown(key)).toMatchObject({ rowsImported: 1, rowsFailed: 1 });
    expect(await world.problems(key, 'error')).toMatchObject([
      {
        rowNumber: 2,
        message:
          'cell 3 has a value, but its column has no name in the first line; add the name, or empty the cell',
      },
    ]);
  });

  test('times of the right form and an absurd size are errors of their rows', async () => {
    await world.people('ann');
    const times = ['20261120', '45981.5', '2026', '2076-01-01', '2026-01-01T24:00:00Z'];
    const key = await world.upload(
      `_svc_name,_svc_customer_id,_svc_timestamp\n${times.map((time) => `a,ann,${time}\n`).join('')}`,
    );
    await world.run();
    expect(await world.shown(key)).toMatchObject({ rowsImported: 1, rowsFailed: 4 });
  });

  test('is published row by row to the live tail of its workspace, and not for an untailed workspace', async () => {
    await world.people('ann');
    const published: { environmentId: number; lines: readonly TailLine[] }[] = [];
    const tail = {
      isTailed: (environmentId: number) => environmentId === 1,
      publish: (environmentId: number, lines: readonly TailLine[]) =>
        void published.push({ environmentId, lines }),
    };
    // Rows are numbered as in a spreadsheet, with the lines in front of them.
    const text = [
      'sep=,',
      '_svc_name,_svc_customer_id,_svc_timestamp,secret',
      'bought,ann,1767261600000,1',
      'bought,nobody,,2',
    ].join('\n');
    const { importId } = await world.upload(text);
    await world.upload(text, { environmentId: 2 });
    expect(await world.run({ tail })).toBe(true);
    expect(await world.run({ tail })).toBe(true);
    const place = { source: 'imports', import_id: importId };
    expect(published).toEqual([
      {
        environmentId: 1,
        lines: [
          expect.objectContaining({
            kind: 'received',
            outcome: 'accepted',
            name: 'bought',
            people: [{ id: 'ann' }],
            details: { type: 'event.track', source: 'imports', event_id: `import:${importId}:1` },
          }),
          expect.objectContaining({
            outcome: 'mended',
            details: expect.objectContaining({ ...place, row: 3, field: '_svc_timestamp' }),
          }),
          expect.objectContaining({
            kind: 'refused',
            outcome: 'refused',
            details: expect.objectContaining({ ...place, row: 4, code: 'person_not_found' }),
          }),
        ],
      },
    ]);
  });

  test('with a value that Postgres refuses loses that row and no other', async () => {
    await world.people('ann', 'bob');
    await sql`alter table events add constraint refused check (name <> 'refused')`.execute(
      world.database,
    );
    const key = await world.upload(
      '_svc_name,_svc_customer_id\na,ann\nrefused,ann\nb,bob\nrefused,bob\nc,ann\n',
    );
    await world.run();
    expect(await world.shown(key)).toMatchObject({
      state: 'imported',
      rowsImported: 3,
      rowsFailed: 2,
    });
    expect(await world.problems(key, 'error')).toMatchObject([{ rowNumber: 2 }, { rowNumber: 4 }]);
    expect((await world.events()).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  });

  test('waits, with all of its rows, where the database refuses them for a reason that need not be a value’s', async () => {
    await world.people('ann');
    await sql`create function refuse() returns trigger language plpgsql as $$
      begin raise exception 'refused' using errcode = '22P02'; end $$`.execute(world.database);
    await sql`create trigger refuse before insert on events execute function refuse()`.execute(
      world.database,
    );
    const key = await world.upload('_svc_name,_svc_customer_id\na,ann\nb,ann\n');
    await expect(world.run()).rejects.toThrow('refused');
    expect(await world.shown(key)).toMatchObject({ rowsImported: 0, rowsFailed: 0 });
    await sql`drop function refuse cascade`.execute(world.database);
    await world.endLeases();
    await world.run();
    expect(await world.shown(key)).toMatchObject({
      state: 'imported',
      rowsImported: 2,
      rowsFailed: 0,
    });
  });
});
