/** Reading a file and beginning again anywhere in it. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readCsv, rowEndsAfter, type CsvRecord } from '../../src/imports/read-csv.ts';

/** In pieces that cut rows, ends of rows and characters in two. */
async function* inPieces(bytes: Buffer) {
  for (let at = 0; at < bytes.length; at += 5) {
    await Promise.resolve();
    yield bytes.subarray(at, at + 5);
  }
}

async function read(bytes: Buffer, fromByte: number, lastByte: number): Promise<CsvRecord[]> {
  const records: CsvRecord[] = [];
  const rest = inPieces(bytes.subarray(fromByte));
  for await (const record of readCsv(rest, fromByte, rowEndsAfter(lastByte))) records.push(record);
  return records;
}

const plain = fc.string({ unit: fc.constantFrom('a', 'ä', '𝄞', ' ', '.'), maxLength: 4 });
const quoted = fc
  .string({ unit: fc.constantFrom('a', 'é', ',', '""', '\n', '\r', '\r\n'), maxLength: 6 })
  .map((text) => `"${text}"`);

test.each([
  ['a newline', '\n', '\r'],
  ['both', '\r\n', '\r'],
  ['a carriage return', '\r', '\n'],
])(
  'behind any row the rest reads as it would have, where rows end with %s, also with what ends none in a cell',
  async (_, end, noEnd) => {
    const cell = fc.oneof(
      plain,
      quoted,
      plain.map((text) => `a${text}${noEnd}b`),
    );
    const file = fc
      .array(fc.array(cell, { minLength: 2, maxLength: 3 }), { minLength: 1, maxLength: 6 })
      .map((rows) => rows.map((cells) => cells.join(',') + end).join(''));
    await fc.assert(
      fc.asyncProperty(file, async (text) => {
        const bytes = Buffer.from(text);
        const lastByte = end.charCodeAt(end.length - 1);
        const whole = await read(bytes, 0, lastByte);
        for (const [index, { endByte }] of whole.entries())
          expect(await read(bytes, endByte, lastByte)).toEqual(whole.slice(index + 1));
      }),
    );
  },
);
