/**
 * Bytes → records of CSV, each with the place behind it.
 *
 * Reading can begin again there. It uses constant memory: a record past the bound is a fault of the file. Faults of CSV
 * itself (a quote that is never closed) end the reading, because the text after one cannot be separated from the text
 * inside. So does a byte that does not fit the file's encoding, unless the file is known to be UTF-8 otherwise: then it
 * is a fault of its record.
 *
 * Before: `database/src/imports/import-chunks.ts`, `file-form.ts`. After: `domain/src/imports/import-file.ts`.
 */
import { pipeline, Readable } from 'node:stream';
import type { FileForm } from '@sluice/database/imports/imports';
import { CsvError, parse } from 'csv-parse';
import { CsvFault } from './csv-fault.ts';
import { decodeFile, newDecoding, type WrongByte } from './decode-file.ts';
import type { MarkedBytes } from './mark-wrong-bytes.ts';

export interface CsvRecord {
  readonly cells: readonly string[];
  /** Start of the next record: of the file, or of its UTF-8 (`decode-file.ts`). */
  readonly endByte: number;
  /** Set if it has bytes that are no UTF-8: the fault with row, place and value. Its cells have marks for them. */
  readonly fault?: string;
}

/**
 * Effect of a byte that is no UTF-8. `refused`: it ends the reading. `marked`: it is a fault of its record. `weighed`:
 * the same, but in the end the file is refused if its wrong rows show that it is in another encoding. The file does not
 * name that encoding, so the sender must send it again whole.
 */
export type WrongBytes = 'refused' | 'weighed' | 'marked';

/**
 * Rows with wrong bytes among all rows, from which on they show another encoding. In a file that is ASCII otherwise,
 * one row is no sign about the others, and a broken program leaves few among many. From this part on the file is text
 * with letters beyond ASCII: as one row in four of names in German, one in three in French.
 */
const WRONG_PART_MAX = 1 / 10;

/** Characters of one record. An event's data may have 64 KB; a longer record is a quote that was never closed. */
const RECORD_LENGTH_MAX = 1_048_576;

/** Of one record: as many as the largest spreadsheet has columns. */
const CELL_COUNT_MAX = 16_384;
const TOO_MANY_CELLS = `it has more than ${CELL_COUNT_MAX} cells, which is the limit of a row`;

/** The parser counts no separators, so the cells of an open record are counted after each slice of so many bytes. */
const SLICE_SIZE_BYTES = 65_536;

const RECORD_ENDS: Record<FileForm['rowEnd'], string[]> = {
  newline: ['\r\n', '\n'],
  return: ['\r'],
  any: ['\r\n', '\n', '\r'],
};

/** Start of the reading: the first record, or the place behind one. */
export interface ReadFrom {
  readonly byte: number;
  /** Of the file, from 1, the line of names counted, as spreadsheets count. */
  readonly row: number;
}

/** Opens the file's bytes from a byte on. */
export type OpenBytes = (fromByte: number) => AsyncIterable<Buffer>;

/**
 * @throws CsvFault
 */
export async function* readCsv(
  open: OpenBytes,
  form: FileForm,
  from: ReadFrom,
  wrongBytes: WrongBytes = 'refused',
): AsyncGenerator<CsvRecord, void, undefined> {
  const { encoding, separator, rowEnd } = form;
  const parser = parse({
    delimiter: separator,
    info: true,
    max_record_size: RECORD_LENGTH_MAX,
    record_delimiter: RECORD_ENDS[rowEnd],
    relax_column_count: true,
    skip_empty_lines: true,
  });
  const decoding = newDecoding(wrongBytes !== 'refused');
  const bytes = open(encoding === 'utf-8' ? from.byte : 0);
  const failure: { error?: unknown } = {};
  const openCells = openCellsOf(parser);
  const checkOpenRecord = (): void => {
    if (openCells().length <= CELL_COUNT_MAX) return;
    throw new CsvFault(`row ${from.row + rowCountOf(parser.info)}: ${TOO_MANY_CELLS}`);
  };
  const slices = inSlices(decodeFile(bytes, encoding, from.byte, decoding), checkOpenRecord);
  const decoded = keepingError(slices, failure);
  pipeline(Readable.from(decoded, { objectMode: false }), parser, () => undefined);
  // The last one is held back: if the bytes end early, it is half of a row.
  let last: CsvRecord | undefined;
  let firstFault: string | undefined;
  let faultCount = 0;
  let recordCount = 0;
  try {
    for await (const { record, info } of parser as AsyncIterable<{
      record: string[];
      info: RowCounts & { bytes: number };
    }>) {
      if (last !== undefined) yield last;
      const endByte = from.byte + info.bytes;
      const row = from.row + rowCountOf(info) - 1;
      if (record.length > CELL_COUNT_MAX) throw new CsvFault(`row ${row}: ${TOO_MANY_CELLS}`);
      const fault = takeFault(decoding.marked, endByte, row);
      firstFault ??= fault;
      recordCount++;
      if (fault !== undefined) faultCount++;
      last = { cells: record, endByte, ...(fault !== undefined && { fault }) };
    }
  } catch (error) {
    if (failure.error !== undefined) throw failure.error;
    if (!(error instanceof CsvError)) throw error;
    // If it is found, records are still on their way here.
    const row = from.row + rowCountOf(error as CsvError & Partial<RowCounts>);
    if (decoding.wrong === undefined) throw new CsvFault(`row ${row}: ${explain(error)}`);
    throw new CsvFault(explainWrongByte(decoding.wrong, encoding, row));
  }
  if (failure.error !== undefined) throw failure.error;
  const { wrong } = decoding;
  if (last !== undefined && (wrong === undefined || wrong.isFirstOfRow)) yield last;
  // The cut row has been counted: as a record, or as an empty line if the cut was at its start.
  const row = from.row + rowCountOf(parser.info) - 1;
  if (wrong !== undefined) throw new CsvFault(explainWrongByte(wrong, encoding, row));
  if (wrongBytes !== 'weighed' || firstFault === undefined) return;
  // The first record is the line of names.
  const rowCount = recordCount - 1;
  const isOtherEncoding =
    decoding.wrongLineCount >= decoding.validLineCount &&
    (faultCount === rowCount || (faultCount > 1 && faultCount >= rowCount * WRONG_PART_MAX));
  if (isOtherEncoding) throw new CsvFault(firstFault);
}

/**
 * The cells of the record that is being read. The parser is built for rows of any number of cells, and has no limit for
 * them: a row of 500 MB of commas took 4 GB. A test holds that they are still found here.
 */
function openCellsOf(parser: object): () => readonly string[] {
  const { state } = parser as { readonly state: { readonly record: readonly string[] } };
  return () => state.record;
}

/** Pieces of any size → small ones. `check` runs before each. */
async function* inSlices(
  pieces: AsyncIterable<Buffer>,
  check: () => void,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; at += SLICE_SIZE_BYTES) {
      check();
      yield piece.subarray(at, at + SLICE_SIZE_BYTES);
    }
  }
}

/** The first of a record's wrong bytes, in a sentence; all of them are taken out. */
function takeFault(marked: MarkedBytes, endByte: number, row: number): string | undefined {
  const { first } = marked;
  if (first === undefined || first.at >= endByte) return undefined;
  marked.dropBefore(endByte);
  return explainWrongByte(first, 'utf-8', row);
}

/** As the parser counts; its errors have them too. */
interface RowCounts {
  readonly records: number;
  readonly empty_lines: number;
}

/** Rows that were passed; empty ones are passed over, but a spreadsheet counts them. */
const rowCountOf = ({ records = 0, empty_lines: emptyCount = 0 }: Partial<RowCounts>): number =>
  records + emptyCount;

/** A stream reports an error of its source as one of its own kinds; the error itself is kept beside it. */
async function* keepingError(
  pieces: AsyncIterable<Buffer>,
  failure: { error?: unknown },
): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* pieces;
  } catch (error) {
    failure.error = error;
  }
}

function explainWrongByte(
  { at, value }: Pick<WrongByte, 'at' | 'value'>,
  encoding: string,
  row: number,
): string {
  const byte = `0x${value.toString(16).padStart(2, '0')}`;
  const remedy =
    encoding === 'utf-8'
      ? 'save the file in UTF-8, or name its encoding in `encoding`'
      : 'name another encoding in `encoding`, or save the file in UTF-8';
  return `row ${row} has the byte ${byte} at byte ${at} of the file, which is not valid in the encoding ${encoding}; ${remedy}`;
}

function explain(error: CsvError): string {
  switch (error.code) {
    case 'CSV_QUOTE_NOT_CLOSED':
      return 'a quote is opened and never closed';
    case 'CSV_MAX_RECORD_SIZE':
      return `it is longer than ${RECORD_LENGTH_MAX} characters, or a quote in it is never closed`;
    case 'CSV_INVALID_CLOSING_QUOTE':
    case 'INVALID_OPENING_QUOTE':
      return 'a quote stands inside a cell; write it twice and put the cell in quotes';
    default:
      return `it is not valid CSV (${error.code})`;
  }
}
