/**
 * A file of CSV: the same records for every cut, and from each record's end on. A fault is reported, and never thrown
 * as a bug.
 */
import { deepEqual, ok } from 'node:assert/strict';
import type { FileForm } from '@sluice/database/imports/imports';
import { CsvFault } from '@sluice/worker/imports/csv-fault';
import { findFileForm } from '@sluice/worker/imports/file-form';
import { readCsv, type CsvRecord } from '@sluice/worker/imports/read-csv';
import { cut, type FuzzTarget } from '../fuzz-target.ts';

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
      form = findFileForm(input, undefined);
    } catch (error) {
      ok(error instanceof CsvFault, `no fault of the file: ${String(error)}`);
      return;
    }
    const whole = await read([input], form, form.firstByte);
    deepEqual(await read(cut(input, random), form, form.firstByte), whole);
    // A worker goes on behind any record, as after a crash.
    const index = Math.floor(random() * whole.records.length);
    const record = whole.records[index];
    if (!record) return;
    const rest = await read(cut(input, random), form, record.endByte);
    deepEqual(rest.records, whole.records.slice(index + 1));
    ok(rest.isFaulty === whole.isFaulty, 'a fault that is there or not, by where reading begins');
  },
};
