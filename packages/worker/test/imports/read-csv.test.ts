/** Reading a file and beginning again anywhere in it. */
import { deflateSync } from 'node:zlib';
import type { FileForm } from '@sluice/database/imports/imports';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findFileForm } from '../../src/imports/file-form.ts';
import { readCsv, type CsvRecord } from '../../src/imports/read-csv.ts';

/** In pieces that cut rows, ends of rows and characters in two. */
async function* inPieces(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += 5) {
    await Promise.resolve();
    yield bytes.subarray(at, at + 5);
  }
}

async function read(bytes: Buffer, form: FileForm, byte = form.firstByte): Promise<CsvRecord[]> {
  const records: CsvRecord[] = [];
  const open = (fromByte: number) => inPieces(bytes.subarray(fromByte));
  for await (const record of readCsv(open, form, { byte, row: 1 })) records.push(record);
  return records;
}

const HEADER = '_svc_name,_svc_customer_id,note';
const plain = fc.string({ unit: fc.constantFrom('a', 'ä', '𝄞', ' ', '.'), maxLength: 4 });
const quoted = fc
  .string({ unit: fc.constantFrom('a', 'é', ',', '""', '\n', '\r', '\r\n'), maxLength: 6 })
  .map((text) => `"${text}"`);

const ENCODINGS: readonly (readonly [string, (text: string) => Buffer])[] = [
  ['UTF-8', (text) => Buffer.from(text)],
  ['UTF-8 with a mark', (text) => Buffer.from(`\ufeff${text}`)],
  ['UTF-16LE with a mark', (text) => Buffer.from(`\ufeff${text}`, 'utf16le')],
  ['UTF-16LE', (text) => Buffer.from(text, 'utf16le')],
  ['UTF-16BE with a mark', (text) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
  ['UTF-16BE', (text) => Buffer.from(text, 'utf16le').swap16()],
];

test.each(
  ENCODINGS.flatMap(([encoding, encode]) =>
    (
      [
        ['a newline', '\n', '\r'],
        ['both', '\r\n', '\r'],
        ['a carriage return', '\r', '\n'],
      ] as const
    ).map(([ending, end, noEnd]) => ({ encoding, encode, ending, end, noEnd })),
  ),
)(
  'behind any row the rest reads as it would have: $encoding, rows end with $ending',
  async ({ encode, end, noEnd }) => {
    const cell = fc.oneof(
      plain,
      quoted,
      plain.map((text) => `a${text}${noEnd}b`),
    );
    const rows = fc
      .array(fc.array(cell, { minLength: 2, maxLength: 3 }), { minLength: 1, maxLength: 6 })
      .map((each) => each.map((cells) => cells.join(',') + end).join(''));
    await fc.assert(
      fc.asyncProperty(rows, async (text) => {
        const bytes = encode(HEADER + end + text);
        const form = findFileForm(bytes, undefined);
        const whole = await read(bytes, form);
        expect(whole[0]?.cells).toEqual(HEADER.split(','));
        for (const [index, { endByte }] of whole.entries())
          expect(await read(bytes, form, endByte)).toEqual(whole.slice(index + 1));
      }),
      { numRuns: 30 },
    );
  },
);

describe('rows that end otherwise than the names', () => {
  const NAMES = ['_svc_name', '_svc_customer_id', 'note'];
  const ROWS = [
    ['a', 'ann', 'x y'],
    ['b', 'ann', 'two\r\nlines, one\rand\nmore'],
    ['c', 'ann', ''],
  ];
  const textOf = (cells: readonly string[]) => cells.map((cell) => `"${cell}"`).join(',');
  const ENDS = ['\n', '\r', '\r\n'];

  test.each(
    ENDS.flatMap((first) => ENDS.map((second) => ({ first, second }))).flatMap((each) =>
      ENDS.map((third) => ({ ...each, third })),
    ),
  )('are rows, from any of them on: $first $second $third', async ({ first, second, third }) => {
    const [one = [], two = [], three = []] = ROWS.map(textOf);
    const bytes = Buffer.from(NAMES.join(',') + first + one + second + two + third + three + third);
    const form = findFileForm(bytes, undefined);
    const all = await read(bytes, form);
    expect(all.map(({ cells }) => cells)).toEqual([NAMES, ...ROWS]);
    for (const [index, { endByte }] of all.entries())
      expect(await read(bytes, form, endByte)).toEqual(all.slice(index + 1));
  });

  test('are rows also if they have more or fewer cells than there are names', async () => {
    const bytes = Buffer.from(`${NAMES.join(',')}\na,ann\rb,ann,c,\r`);
    const records = await read(bytes, findFileForm(bytes, undefined));
    expect(records.map(({ cells }) => cells)).toEqual([NAMES, ['a', 'ann'], ['b', 'ann', 'c', '']]);
  });

  test('are not found if a cell has the other line end', () => {
    const rowEndOf = (text: string) =>
      findFileForm(Buffer.from(`${NAMES.join(',')}${text}`), undefined).rowEnd;
    expect(rowEndOf('\na,ann,one\rtwo\nb,ann,c\n')).toBe('newline');
    expect(rowEndOf('\ra,ann,one\ntwo\rb,ann,c\r')).toBe('return');
  });
});

describe('the form of a file', () => {
  const cellsOf = async (bytes: Buffer, declared?: string) =>
    (await read(bytes, findFileForm(bytes, declared))).map(({ cells }) => cells);

  test.each([';', '\t', '|', ','])('cells may be separated by %j', async (separator) => {
    const rows = [HEADER.split(','), ['bought', 'ann', 'a b']];
    const text = rows.map((cells) => cells.join(separator)).join('\n');
    expect(await cellsOf(Buffer.from(text))).toEqual(rows);
    expect(await cellsOf(Buffer.from(`"${text.replace(separator, `"${separator}`)}`))).toEqual(
      rows,
    );
  });

  test.each(ENCODINGS)(
    'sep= in front of the names sets the separator of cells: %s',
    async (_, encode) => {
      const bytes = encode('sep=;\r\n_svc_name;_svc_customer_id;note\r\nbought;ann;1,5\r\n');
      expect(await cellsOf(bytes)).toEqual([HEADER.split(','), ['bought', 'ann', '1,5']]);
      expect(findFileForm(bytes, undefined).linesBefore).toBe(1);
    },
  );

  test.each(['"sep=;"', 'sep=;;;', 'SEP=;', '"sep=;",,'])(
    'sep= is read as programs write it anew: %s',
    async (line) => {
      const text = `${line}\n_svc_name;_svc_customer_id;note\nbought;ann;1,5\n`;
      expect(await cellsOf(Buffer.from(text))).toEqual([
        HEADER.split(','),
        ['bought', 'ann', '1,5'],
      ]);
    },
  );

  test('sep= with a character that cannot separate cells is refused with its text', () => {
    expect(() => findFileForm(Buffer.from('sep=x\na'), undefined)).toThrow('row 1 has "sep=x"');
  });

  test.each([
    ['gzip', [0x1f, 0x8b, 8, 0], 'gzip'],
    ['xlsx', [0x50, 0x4b, 3, 4, 20], '.xlsx'],
    ['xls', [0xd0, 0xcf, 0x11, 0xe0, 0xa1], '.xls'],
    ['UTF-32', [0xff, 0xfe, 0, 0, 0x5f], 'UTF-32'],
    ['UTF-32, little end first, without a mark', [0x5f, 0, 0, 0, 0x73, 0, 0, 0], 'UTF-32'],
    ['UTF-32, big end first, without a mark', [0, 0, 0, 0x5f, 0, 0, 0, 0x73], 'UTF-32'],
    ['an empty ZIP archive', [...Buffer.from('PK\x05\x06')], 'ZIP'],
    ['zlib', [...deflateSync(HEADER)], 'zlib'],
    ['7z', [0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], '7z'],
    ['RAR', [...Buffer.from('Rar!\x1a\x07\x01')], 'RAR'],
    ['PDF', [...Buffer.from('%PDF-1.7')], 'PDF'],
  ])('%s is refused with its kind', (_, bytes, what) => {
    expect(() => findFileForm(Buffer.from(bytes), undefined)).toThrow(what);
  });

  test('a declared encoding is read by it, and a mark goes before it', async () => {
    const text = Buffer.from(`${HEADER}\nCaf\xe9,ann,Z\xfcrich \x80\n`, 'latin1');
    expect((await cellsOf(text, 'windows-1252'))[1]).toEqual(['Café', 'ann', 'Zürich €']);
    expect((await cellsOf(text, 'ISO-8859-15'))[1]?.[0]).toBe('Café');
    const sjis = Buffer.concat([Buffer.from(`${HEADER}\n`), Buffer.of(0x93, 0xfa, 0x96, 0x7b)]);
    expect((await cellsOf(sjis, 'Shift_JIS'))[1]).toEqual(['日本']);
    const marked = Buffer.from(`\ufeff${HEADER}\nCafé,ann,\n`);
    expect((await cellsOf(marked, 'windows-1252'))[1]?.[0]).toBe('Café');
    // No other encoding has the zeros of UTF-16.
    const utf16 = Buffer.from(`${HEADER}\nCafé,ann,\n`, 'utf16le');
    expect((await cellsOf(utf16, 'windows-1252'))[1]?.[0]).toBe('Café');
  });

  test.each(['utf-16le', 'utf-16be'])(
    'a row of %s that breaks off behind U+0A00 is not read: those are the bytes of a line end, swapped',
    async (encoding) => {
      const text = Buffer.from(`\ufeff${HEADER}\na,ann,x\nb,ann,\u0a00`, 'utf16le');
      const ordered = encoding === 'utf-16le' ? text : text.swap16();
      // Half of a character.
      const bytes = Buffer.concat([ordered, Buffer.of(0x31)]);
      const form = findFileForm(bytes, undefined);
      expect(form.encoding).toBe(encoding);
      const names: (string | undefined)[] = [];
      const readAll = async () => {
        const open = () => inPieces(bytes);
        for await (const { cells } of readCsv(open, form, { byte: form.firstByte, row: 1 }))
          names.push(cells[0]);
      };
      await expect(readAll()).rejects.toThrow('row 3 has the byte 0x31');
      expect(names).toEqual(['_svc_name', 'a']);
    },
  );

  test('a row of Windows-1252 keeps the letter ÿ at its start, in any piece of the file', async () => {
    const rows = Array.from({ length: 20 }, (_, index) => ['ÿ', `ann${index}`, 'ÿ']);
    const lines = [HEADER, ...rows.map((cells) => cells.join(','))];
    const text = Buffer.from(`${lines.join('\n')}\n`, 'latin1');
    expect((await cellsOf(text, 'windows-1252')).slice(1)).toEqual(rows);
    expect((await cellsOf(text, 'iso-8859-1')).slice(1)).toEqual(rows);
  });
});

test('valid UTF-8 goes before a declared encoding of one byte, which servers often declare for any file', () => {
  const encodingOf = (text: Buffer, declared: string, isAsDeclared?: boolean) =>
    findFileForm(text, declared, isAsDeclared).encoding;
  const utf8 = Buffer.from(`${HEADER}\nCafé,ann,Zürich\n`);
  for (const declared of ['windows-1252', 'iso-8859-1', 'ISO-8859-15', 'koi8-r'])
    expect(encodingOf(utf8, declared)).toBe('utf-8');
  expect(encodingOf(utf8, 'iso-8859-1', true)).toBe('windows-1252');
  // A short text of two bytes a letter may be valid by chance: 通 of GBK is.
  expect(encodingOf(Buffer.from(`${HEADER}\n\xcd\xa8,b,c\n`, 'latin1'), 'gbk')).toBe('gbk');
  // ASCII is no sign of either.
  expect(encodingOf(Buffer.from(HEADER), 'windows-1252')).toBe('windows-1252');
  const cut = Buffer.from(`${HEADER}\né,b,c\n${'é'.repeat(40_000)}`).subarray(0, 65_536);
  expect(cut.at(-1)).toBe(0xc3);
  expect(encodingOf(cut, 'windows-1252')).toBe('utf-8');
});

describe('a byte that its encoding does not have', () => {
  const faultOf = async (bytes: Buffer, declared?: string): Promise<string> => {
    try {
      await read(bytes, findFileForm(bytes, declared));
    } catch (error) {
      return (error as Error).message;
    }
    return 'none';
  };
  const latin = (text: string) => Buffer.from(text, 'latin1');

  test.each([
    ['in a word', latin(`${HEADER}\nCaf\xe9,ann,1\n`), 'row 2 has the byte 0xe9 at byte 35'],
    [
      'at the start of a row',
      latin(`${HEADER}\na,b,c\n\xfcber,ann,1\n`),
      'row 3 has the byte 0xfc at byte 38',
    ],
    [
      'at the end of the file',
      latin(`${HEADER}\na,b,caf\xe9`),
      'row 2 has the byte 0xe9 at byte 39',
    ],
    [
      'within quotes',
      latin(`${HEADER}\na,b,c\na,b,"c\n\xe9"\n`),
      'row 3 has the byte 0xe9 at byte 45',
    ],
    [
      'as a lone continuation',
      latin(`${HEADER}\na\x80,b,c\n`),
      'row 2 has the byte 0x80 at byte 33',
    ],
    [
      'among the names of columns',
      latin('stra\xdfe,_svc_name,_svc_customer_id\n'),
      'row 1 has the byte 0xdf at byte 4',
    ],
    [
      'behind empty lines, which a spreadsheet counts',
      latin(`\n${HEADER}\n\na,b,c\n\n\xe9,b,c\n`),
      'row 6 has the byte 0xe9 at byte 41',
    ],
    [
      'behind empty lines, in a row',
      latin(`${HEADER}\n\n\r\na,b,\xe9\n`),
      'row 4 has the byte 0xe9 at byte 39',
    ],
    [
      'behind letters of two bytes',
      Buffer.concat([Buffer.from(`${HEADER}\nüü`), Buffer.of(0xff)]),
      'row 2 has the byte 0xff at byte 36',
    ],
  ])('is refused with row, place and value: %s', async (_, bytes, fault) => {
    expect(await faultOf(bytes)).toContain(
      `${fault} of the file, which is not valid in the encoding utf-8`,
    );
  });

  test('ends the reading: no half of its row comes before it', async () => {
    const bytes = latin(`${HEADER}\na,b,c\nd,caf\xe9,f\n`);
    const cells: (readonly string[])[] = [];
    const form = findFileForm(bytes, undefined);
    const reading = (async () => {
      for await (const record of readCsv(() => inPieces(bytes), form, { byte: 0, row: 1 }))
        cells.push(record.cells);
    })();
    await expect(reading).rejects.toThrow('row 3');
    expect(cells).toEqual([HEADER.split(','), ['a', 'b', 'c']]);
  });

  test('half of a pair in UTF-16, and half of a character, are refused', async () => {
    const lone = Buffer.from(`\ufeff${HEADER}\na\ud800b,c,d\n`, 'utf16le');
    expect(await faultOf(lone)).toContain('row 2 has the byte 0x00 at byte 68');
    const whole = Buffer.from(`\ufeff${HEADER}\nab,c,d`, 'utf16le');
    expect(await faultOf(whole.subarray(0, -1))).toContain('row 2 has the byte 0x64');
  });

  test('that Windows leaves out is refused', async () => {
    const text = latin(`${HEADER}\n\xe9t\xe9,b,c\nd\x81e,b,c\n`);
    expect(await faultOf(text, 'windows-1252')).toContain('row 3 has the byte 0x81 at byte 41');
    expect(await faultOf(latin(`${HEADER}\n\x80,b,\x9f\n`), 'windows-1252')).toBe('none');
    expect(await faultOf(latin(`${HEADER}\n\x98,b\n`), 'windows-1251')).toContain('0x98');
  });

  test('of a declared encoding is refused too', async () => {
    const bytes = Buffer.concat([
      Buffer.from(`${HEADER}\na`),
      Buffer.of(0x93, 0x20),
      Buffer.from(',b\n'),
    ]);
    expect(await faultOf(bytes, 'shift_jis')).toContain('row 2 has the byte 0x93 at byte 33');
  });
});

test.each([
  [
    'an inch mark',
    `${HEADER}\na,b,1\na,b,19" rack\na,b,3\n`,
    'row 3: a quote stands inside a cell',
  ],
  [
    'a quote that is never closed',
    `${HEADER}\na,b,1\na,b,"x\na,b,2\n`,
    'row 3: a quote is opened and never closed',
  ],
  [
    'a quote behind empty lines, which a spreadsheet counts',
    `\n${HEADER}\n\n\na,b,1\n\na,b,19" rack\n`,
    'row 7: a quote stands inside a cell',
  ],
  ['text behind a quote', `${HEADER}\na,b,"x"y\n`, 'row 2: a quote stands inside a cell'],
])('%s is refused with its row', async (_, text, fault) => {
  const bytes = Buffer.from(text);
  await expect(read(bytes, findFileForm(bytes, undefined))).rejects.toThrow(fault);
});
