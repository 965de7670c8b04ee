/**
 * A file of CSV: the same records for every cut, and from each record's end on, and as a second reader finds them
 * (`plain-csv.ts`). A fault is reported, and never thrown as a bug.
 */
import { deepEqual, ok } from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import type { FileForm } from '@sluice/database/imports/imports';
import { CsvFault } from '@sluice/worker/imports/csv-fault';
import { findFileForm } from '@sluice/worker/imports/file-form';
import { readCsv, type CsvRecord } from '@sluice/worker/imports/read-csv';
import { pick } from '@sluice/domain/values/seeded-random';
import { cut, type FuzzTarget } from '../fuzz-target.ts';
import { readPlainCsv } from '../plain-csv.ts';

/** Declared by the sender. */
const ENCODINGS = [undefined, 'windows-1252', 'shift_jis', 'gb18030', 'utf-16be'] as const;
const ROW_ENDS = { newline: ['\r\n', '\n'], return: ['\r'], any: ['\r\n', '\n', '\r'] } as const;

interface Reading {
  readonly records: CsvRecord[];
  /** The cuts decide which of several faults is reported first. */
  readonly isFaulty: boolean;
}

async function read(pieces: readonly Buffer[], form: FileForm, byte: number): Promise<Reading> {
  const records: CsvRecord[] = [];
  async function* open(fromByte: number): AsyncGenerator<Buffer> {
    let left = fromByte;
    for (const piece of pieces) {
      if (piece.length > left) yield piece.subarray(left);
      left = Math.max(0, left - piece.length);
    }
  }
  try {
    for await (const record of readCsv(open, form, { byte, row: 1 })) records.push(record);
    return { records, isFaulty: false };
  } catch (error) {
    if (!(error instanceof CsvFault)) throw error;
    return { records, isFaulty: true };
  }
}

/** Throws if a second reader finds other cells, or no fault. */
function compare({ records, isFaulty }: Reading, input: Buffer, form: FileForm): void {
  const text = textOf(input, form);
  // csv-parse passes over a quote in front of a null byte.
  if (text.includes('"\0')) return;
  const expected = readPlainCsv(text, form.separator, ROW_ENDS[form.rowEnd]);
  if (isFaulty) {
    const isSound = form.encoding === 'utf-8' && isUtf8(input) && expected !== undefined;
    ok(!isSound, 'a fault of a file without one');
  } else {
    const cells = records.map((each) => each.cells);
    deepEqual(cells, expected, 'other cells than a second reader finds');
  }
}

/** From the first record on. */
function textOf(input: Buffer, { encoding, firstByte }: FileForm): string {
  const decoder = new TextDecoder(encoding, { ignoreBOM: encoding === 'utf-8' });
  return encoding === 'utf-8'
    ? decoder.decode(input.subarray(firstByte))
    : decoder.decode(input).slice(firstByte);
}

/** @public `scripts/fuzz.ts` imports it by the file's name. */
export const target: FuzzTarget = {
  seeds: [
    'userId,event\nu1,Seen\nu2,"a ""b"", c"\n',
    'sep=;\r\na;b\r\n1;2\r\n\r\n3;4',
    '\ufeffa\tb\n1\t"x\ny"\n',
    Buffer.from('\ufeffa,b\n1,é\n', 'utf16le'),
  ],
  words: [
    '"',
    '""',
    ',',
    ';',
    '\t',
    '|',
    '\n',
    '\r',
    '\r\n',
    'sep=',
    '\xef\xbb\xbf',
    '\xff\xfe',
    '\xc3\xa9',
    '\xe9',
    '\0',
  ],
  async run(input, random) {
    let form: FileForm;
    try {
      form = findFileForm(input, pick(random, ENCODINGS));
    } catch (error) {
      ok(error instanceof CsvFault, `no fault of the file: ${String(error)}`);
      return;
    }
    const whole = await read([input], form, form.firstByte);
    compare(whole, input, form);
    deepEqual(await read(cut(input, random), form, form.firstByte), whole);
    // A worker goes on behind any record, as after a crash.
    const index = Math.floor(random() * whole.records.length);
    const record = whole.records[index];
    if (!record) return;
    const rest = await read(cut(input, random), form, record.endByte);
    deepEqual(rest.records, whole.records.slice(index + 1));
    ok(
      rest.isFaulty === whole.isFaulty,
      'a fault that depends on the place of the first read byte',
    );
  },
};
