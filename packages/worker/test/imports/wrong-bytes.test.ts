/**
 * A row with bytes that are no UTF-8 is lost alone.
 *
 * If the rows show that the file is in another encoding, the whole file is refused.
 */
import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findFileForm } from '../../src/imports/file-form.ts';
import { markWrongBytes } from '../../src/imports/mark-wrong-bytes.ts';
import { readCsv, type CsvRecord, type WrongBytes } from '../../src/imports/read-csv.ts';

const HEADER = '_svc_name,_svc_customer_id,note\n';
const joined = (...parts: readonly (string | readonly number[])[]) =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))),
  );

async function read(bytes: Buffer, wrongBytes: WrongBytes, from = 0): Promise<CsvRecord[]> {
  const form = findFileForm(bytes, undefined);
  const records: CsvRecord[] = [];
  const open = async function* (byte: number) {
    for (let at = byte; at < bytes.length; at += 7) yield bytes.subarray(at, at + 7);
  };
  const start = { byte: Math.max(from, form.firstByte), row: 1 };
  for await (const record of readCsv(open, form, start, wrongBytes)) records.push(record);
  return records;
}

const FILE = joined(
  HEADER,
  'é,ann,1\né,ann,"two\nlines ',
  [0xff],
  '"\n\n',
  [0xc3],
  ',ann,3\nü,a,4\n',
);

test('is a fault of the record with its row, place and value, and of no other', async () => {
  const records = await read(FILE, 'weighed');
  expect(records.map(({ fault }) => fault?.slice(0, 45))).toEqual([
    undefined,
    undefined,
    'row 3 has the byte 0xff at byte 59 of the fil',
    'row 5 has the byte 0xc3 at byte 63 of the fil',
    undefined,
  ]);
  expect(records[4]?.cells).toEqual(['ü', 'a', '4']);
});

test('a wrong byte is found again if reading begins in the middle', async () => {
  const all = await read(FILE, 'marked');
  for (const [index, { endByte }] of all.entries()) {
    const rest = await read(FILE, 'marked', endByte);
    expect(rest.map(({ cells }) => cells)).toEqual(all.slice(index + 1).map(({ cells }) => cells));
    expect(rest.map(({ fault }) => fault !== undefined)).toEqual(
      all.slice(index + 1).map(({ fault }) => fault !== undefined),
    );
  }
});

const ASCII_ROWS = 'a,b,c\n'.repeat(30);

test.each([
  ['every row is wrong', joined(HEADER, [0xe9], ',b,c\n'), 2],
  [
    'a tenth of the rows is wrong',
    joined(HEADER, ...Array(3).fill([0xe9, 0x0a]), ASCII_ROWS.slice(0, 162)),
    2,
  ],
  [
    'as many rows are wrong as valid',
    joined(HEADER, 'é,b,c\n', 'é,b,c\n', [0xe9, 0x0a], [0xe9, 0x0a]),
    4,
  ],
  [
    'rows end in carriage returns',
    Buffer.from('_svc_name,_svc_customer_id\ra,b\r\xe9,b\r\xe8,b\r', 'latin1'),
    3,
  ],
])('refuses the file where %s', async (_, bytes, row) => {
  await expect(read(bytes, 'weighed')).rejects.toThrow(`row ${row} has the byte 0xe9`);
});

test.each([
  ['one row of few is', joined(HEADER, 'a,b,c\n', [0xe9], ',b,c\na,b,d\n'), 1],
  ['one row has two', joined(HEADER, 'a,b,c\na,', [0xff], 'b,', [0xc3], 'c\n'), 1],
  ['a few of many are', joined(HEADER, ASCII_ROWS, 'a', [0x80], ',b,c\n', [0xff], ',b,c\n'), 2],
  [
    'rows end in carriage returns',
    Buffer.from('_svc_name,_svc_customer_id\ra,b\r\xff,b\rc,b\r', 'latin1'),
    1,
  ],
])('of a file that is ASCII otherwise costs no other row, where %s', async (_, bytes, count) => {
  const records = await read(bytes, 'weighed');
  expect(records.filter(({ fault }) => fault !== undefined)).toHaveLength(count);
  expect(records.map(({ cells }) => cells)).toEqual(
    (await read(bytes, 'marked')).map(({ cells }) => cells),
  );
});

test('marks make valid UTF-8 of the same length, and leave valid bytes as they are', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'grapheme' }).map((text) => Buffer.from(text)),
    fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
      const bytes = Buffer.concat(pieces);
      const { utf8, marked } = markWrongBytes(bytes);
      expect(isUtf8(utf8)).toBe(true);
      expect(utf8).toHaveLength(bytes.length);
      expect(marked.length === 0).toBe(isUtf8(bytes));
      if (isUtf8(bytes)) expect(utf8.equals(bytes)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});
