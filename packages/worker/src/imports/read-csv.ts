/**
 * Bytes → records of CSV, each with the byte behind it, so that reading can begin again there.
 *
 * In constant memory: a record past the bound is a fault of the file. Faults of CSV itself (a quote
 * that is never closed) end the reading: what comes after one cannot be told from what is inside.
 *
 * Before: `database/src/imports/import-chunks.ts`. After: `domain/src/imports/import-file.ts`.
 */
import { pipeline, Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';

export interface CsvRecord {
  readonly cells: readonly string[];
  /** Of the file: where the next record begins. */
  readonly endByte: number;
}

/** The file is no CSV from some place on. The message is for its owner and quotes nothing of it. */
export class CsvFault extends Error {}

/** Characters of one record. An event's data may have 64 KB; what is longer is a quote that was never closed. */
const RECORD_LENGTH_MAX = 1_048_576;

/** What ends a row; undefined: as the first one that is read ends. */
export type RowEnds = readonly string[] | undefined;

/**
 * How the rows of a file end, by the last byte of its first line. Not to be guessed anew where reading begins again:
 * a carriage return inside a cell could be taken for it, and the rest of the file would be read wrongly.
 */
export const rowEndsAfter = (lastByte: number | undefined): RowEnds =>
  lastByte === 0x0d ? ['\r'] : ['\r\n', '\n'];

/**
 * @param fromByte - where in the file the bytes begin: 0, or the `endByte` of a record.
 * @throws CsvFault
 */
export async function* readCsv(
  bytes: AsyncIterable<Buffer>,
  fromByte: number,
  rowEnds: RowEnds,
): AsyncGenerator<CsvRecord, void, undefined> {
  const parser = parse({
    bom: fromByte === 0,
    info: true,
    max_record_size: RECORD_LENGTH_MAX,
    record_delimiter: rowEnds === undefined ? [] : [...rowEnds],
    relax_column_count: true,
    skip_empty_lines: true,
  });
  pipeline(Readable.from(bytes, { objectMode: false }), parser, () => undefined);
  try {
    for await (const { record, info } of parser as AsyncIterable<{
      record: string[];
      info: { bytes: number };
    }>) {
      yield { cells: record, endByte: fromByte + info.bytes };
    }
  } catch (error) {
    throw error instanceof CsvError ? new CsvFault(explain(error)) : error;
  }
}

function explain(error: CsvError): string {
  switch (error.code) {
    case 'CSV_QUOTE_NOT_CLOSED':
      return 'a quote is opened and never closed';
    case 'CSV_MAX_RECORD_SIZE':
      return `a row is longer than ${RECORD_LENGTH_MAX} characters, or a quote before it is never closed`;
    case 'CSV_INVALID_CLOSING_QUOTE':
    case 'INVALID_OPENING_QUOTE':
      return 'a quote stands inside a cell; write it twice and put the cell in quotes';
    default:
      return `it is not valid CSV (${error.code})`;
  }
}
