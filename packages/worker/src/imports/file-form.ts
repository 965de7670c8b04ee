/**
 * Form of an import file, read from its start.
 *
 * It is its encoding, its separators of cells and rows, and the place of its first record. It is found once and stored
 * with the import (`imports.file_form`): a second look, after a stop, could find another form.
 *
 * UTF-8 and UTF-16 are recognised by their byte order mark or by being valid. Any other encoding must be declared, for
 * Windows-1252 looks like its dozen relatives. A file that is no text is refused with a message that names its type.
 *
 * Before: `run-import.ts`. After: `read-csv.ts`.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { isKnownEncoding } from '@sluice/database/imports/file-encoding';
import type { FileForm } from '@sluice/database/imports/imports';
import { CsvFault } from './csv-fault.ts';
import { firstLineOf, rowEndOf } from './row-end.ts';

/** More than the names of a hundred columns take. */
export const FORM_SIZE_BYTES = 65_536;

const SEPARATORS = [',', ';', '\t', '|'] as const;

const ZIP = 'is a ZIP archive or an Excel workbook (.xlsx); save the sheet as CSV in UTF-8';
const ZLIB = 'is compressed with zlib; send it uncompressed';
const UTF_32 = 'is in UTF-32; save it in UTF-8';

/** First bytes of types that are often sent in place of a CSV file, each with the remedy. */
const NO_TEXT: readonly (readonly [readonly number[], string])[] = [
  [[0x1f, 0x8b], 'is compressed with gzip; send it uncompressed'],
  [[0x50, 0x4b, 0x03, 0x04], ZIP],
  [[0x50, 0x4b, 0x05, 0x06], ZIP],
  [[0x78, 0x01], ZLIB],
  [[0x78, 0x9c], ZLIB],
  [[0x78, 0xda], ZLIB],
  [[0xd0, 0xcf, 0x11, 0xe0], 'is an Excel workbook (.xls); save the sheet as CSV in UTF-8'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'is compressed with Zstandard; send it uncompressed'],
  [[0x42, 0x5a, 0x68], 'is compressed with bzip2; send it uncompressed'],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a], 'is compressed with xz; send it uncompressed'],
  [[0x25, 0x50, 0x44, 0x46], 'is a PDF document; send CSV'],
  [[0x50, 0x41, 0x52, 0x31], 'is a Parquet file; send CSV'],
  [[0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c], 'is a 7z archive; send CSV in UTF-8'],
  [[0x52, 0x61, 0x72, 0x21, 0x1a, 0x07], 'is a RAR archive; send CSV in UTF-8'],
  [[0xff, 0xfe, 0x00, 0x00], UTF_32],
  [[0x00, 0x00, 0xfe, 0xff], UTF_32],
];

const UTF_8_MARK = [0xef, 0xbb, 0xbf];

/**
 * @param start - the first `FORM_SIZE_BYTES` of the file, or all of it.
 * @param declared - the name of the encoding that its sender declares; undefined without a declaration.
 * @param isAsDeclared - the file is known to be no UTF-8.
 * @throws CsvFault if it is no CSV.
 */
export function findFileForm(
  start: Buffer,
  declared: string | undefined,
  isAsDeclared = false,
): FileForm {
  for (const [bytes, reason] of NO_TEXT)
    if (beginsWith(start, bytes)) throw new CsvFault(`the file ${reason}`);
  // The names of the columns are ASCII, of which UTF-32 makes three bytes of four zero.
  if (
    [0, 1].some((at) => isZeroAt(start, at) && isZeroAt(start, at + 1) && isZeroAt(start, at + 2))
  )
    throw new CsvFault(`the file ${UTF_32}`);
  const encoding = encodingOf(start, declared, isAsDeclared);
  // Node would drop a first ÿ of Windows-1252 (`decode-file.ts`).
  const ignoreBOM = encoding.startsWith('utf-');
  const text = new TextDecoder(encoding, { ignoreBOM }).decode(start);
  // Bytes of UTF-8 are read at their place, with their mark; all else is made UTF-8 first, without it.
  const markLength = text.startsWith('\ufeff') ? 1 : 0;
  const markSizeBytes = markLength === 1 && encoding === 'utf-8' ? UTF_8_MARK.length : 0;
  const said = /^"?sep=([^\r\n"]?)"?[,;\t|]*(?:\r\n|\n|\r|$)/i.exec(text.slice(markLength));
  const saidSeparator = said?.[1];
  if (saidSeparator !== undefined && !isSeparator(saidSeparator))
    throw new CsvFault(
      `row 1 has ${JSON.stringify(`sep=${saidSeparator}`)}; cells may be separated by a comma, a semicolon, a tab or |`,
    );
  const headerAt = markLength + (said?.[0].length ?? 0);
  const rows = text.slice(headerAt);
  const separator = saidSeparator ?? separatorOf(firstLineOf(rows).line);
  return {
    encoding,
    separator,
    rowEnd: rowEndOf(rows, separator),
    // `sep=` is ASCII, so its characters are as many bytes.
    firstByte: markSizeBytes + (said?.[0].length ?? 0),
    linesBefore: said === null ? 0 : 1,
  };
}

/** Of a file whose rows an older version began: it read UTF-8 with commas, and the first line shows how rows end. */
export function formBefore(start: Buffer): FileForm {
  const { rowEnd } = firstLineOf(start.toString());
  return { encoding: 'utf-8', separator: ',', rowEnd, firstByte: 0, linesBefore: 0 };
}

function encodingOf(start: Buffer, declared: string | undefined, isAsDeclared: boolean): string {
  if (beginsWith(start, UTF_8_MARK)) return 'utf-8';
  if (beginsWith(start, [0xff, 0xfe])) return 'utf-16le';
  if (beginsWith(start, [0xfe, 0xff])) return 'utf-16be';
  // The names of the columns are ASCII, of which UTF-16 makes every other byte zero, and no other encoding any.
  if (isZeroAt(start, 1) && isZeroAt(start, 3)) return 'utf-16le';
  if (isZeroAt(start, 0) && isZeroAt(start, 2)) return 'utf-16be';
  if (declared !== undefined) {
    if (!isKnownEncoding(declared))
      throw new CsvFault(
        `the encoding ${JSON.stringify(declared)} is declared, which is not known`,
      );
    // The standard takes ASCII for Windows-1252, but a sender that declares ASCII sends no such letters.
    if (/^(?:us-)?ascii$/i.test(declared.trim())) return 'utf-8';
    const { encoding } = new TextDecoder(declared);
    return !isAsDeclared && isRatherUtf8(start, encoding) ? 'utf-8' : encoding;
  }
  return 'utf-8';
}

/** Of these a letter has two bytes, of which short texts may be valid UTF-8 by chance. */
const OF_SEVERAL_BYTES: ReadonlySet<string> = new Set([
  ...['shift_jis', 'euc-jp', 'iso-2022-jp', 'gbk', 'gb18030', 'big5', 'euc-kr'],
  ...['utf-16le', 'utf-16be'],
]);

/**
 * True for letters beyond ASCII that are valid UTF-8, though one of the small encodings is declared. Servers declare
 * Latin-1 for every file. A text that is in Latin-1 has a letter beyond ASCII between two within, which is no UTF-8.
 */
function isRatherUtf8(start: Buffer, encoding: string): boolean {
  if (OF_SEVERAL_BYTES.has(encoding)) return false;
  const isCut = start.length >= FORM_SIZE_BYTES;
  const lines = isCut ? start.subarray(0, start.lastIndexOf(0x0a) + 1) : start;
  return isUtf8(lines) && !isAscii(lines);
}

/** With the right one the names of the columns are there that every file has. */
function separatorOf(line: string): FileForm['separator'] {
  const isRight = (separator: string): boolean => {
    const names = line.split(separator).map((name) =>
      name
        .trim()
        .replace(/^"(.*)"$/s, '$1')
        .trim(),
    );
    return (
      names.some((name) => /^_(?:svc|cio)_name$/.test(name)) &&
      names.some((name) => /^_(?:svc|cio)_customer_id$/.test(name))
    );
  };
  return SEPARATORS.find(isRight) ?? ',';
}

const isSeparator = (text: string): text is FileForm['separator'] =>
  (SEPARATORS as readonly string[]).includes(text);

const beginsWith = (start: Buffer, bytes: readonly number[]): boolean =>
  start.length >= bytes.length && bytes.every((byte, index) => start[index] === byte);

const isZeroAt = (start: Buffer, index: number): boolean => start[index] === 0;
