/**
 * The bytes of a file, in any encoding → UTF-8, checked.
 *
 * Bytes of UTF-8 pass as they are, so that a place in the result is a place in the file. All else becomes UTF-8, and a
 * place counts from the start of that. To begin again there, the part before it is decoded and skipped (20 s for 10
 * GB).
 *
 * A byte that does not fit its encoding ends the reading. A replaced byte would change people's names without notice.
 * In UTF-8 it may be marked instead, for its row to be refused alone.
 */
import { isAscii, isUtf8 as isValidUtf8 } from 'node:buffer';
import { CsvFault } from './csv-fault.ts';
import { MarkedBytes, markWrongBytes } from './mark-wrong-bytes.ts';

/** A byte that its encoding does not have. */
export interface WrongByte {
  /** Of the file, from 0. */
  readonly at: number;
  readonly value: number;
  /** True if it is the first byte of its row. */
  readonly isFirstOfRow: boolean;
}

/** Findings on the way. */
export interface Decoding {
  /** Whether a wrong byte of UTF-8 is marked and passed. */
  readonly marks: boolean;
  /** Set before the result ends, if it ends early: in front of this byte. */
  wrong: WrongByte | undefined;
  /** With `marks`: the wrong bytes, in order. Their reader takes them out. */
  readonly marked: MarkedBytes;
  /** With `marks`: number of lines with letters beyond ASCII that are valid, and number of wrong bytes. */
  validLineCount: number;
  wrongLineCount: number;
}

export const newDecoding = (marks: boolean): Decoding => ({
  marks,
  wrong: undefined,
  marked: new MarkedBytes(),
  validLineCount: 0,
  wrongLineCount: 0,
});

/** A line has no more bytes, in any encoding of a row of the greatest length. */
const LINE_SIZE_BYTES_MAX = 8_388_608;

/**
 * @param bytes - of the file: from `fromByte` on if it is UTF-8, else from its start.
 * @param fromByte - start of the result, a byte of UTF-8.
 * @throws CsvFault if a line is too long to be one.
 */
export async function* decodeFile(
  bytes: AsyncIterable<Buffer>,
  encoding: string,
  fromByte: number,
  decoding: Decoding,
): AsyncGenerator<Buffer, void, undefined> {
  const isUtf8 = encoding === 'utf-8';
  let at = isUtf8 ? fromByte : 0;
  let passedOver = isUtf8 ? 0 : fromByte;
  let isFirst = !isUtf8;
  for await (const lines of wholeLines(bytes, encoding)) {
    if (isUtf8 && decoding.marks) {
      yield markLines(lines, at, decoding);
      at += lines.length;
      continue;
    }
    const wrongIndex = isRight(lines, encoding) ? undefined : findWrong(lines, encoding);
    const right = lines.subarray(0, wrongIndex);
    const utf8 = isUtf8 ? right : Buffer.from(decode(right, encoding, !isFirst));
    isFirst = false;
    if (passedOver < utf8.length) yield utf8.subarray(passedOver);
    passedOver = Math.max(0, passedOver - utf8.length);
    if (wrongIndex !== undefined) {
      const isFirstOfRow = utf8.length === 0 || isLineEnd(utf8.at(-1) ?? 0);
      decoding.wrong = { at: at + wrongIndex, value: lines[wrongIndex] ?? 0, isFirstOfRow };
      return;
    }
    at += lines.length;
  }
}

/** Pieces of any size → pieces of whole lines, at whose ends no character is cut and no decoder is in the middle of one. */
async function* wholeLines(
  pieces: AsyncIterable<Buffer>,
  encoding: string,
): AsyncGenerator<Buffer, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of pieces) {
    const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    const end = encoding.startsWith('utf-16')
      ? endOfLinesInUtf16(bytes, encoding === 'utf-16le')
      : endOfLines(bytes);
    if (end > 0) yield bytes.subarray(0, end);
    rest = bytes.subarray(end);
    if (rest.length > LINE_SIZE_BYTES_MAX)
      throw new CsvFault(`a line is longer than ${LINE_SIZE_BYTES_MAX} bytes`);
  }
  if (rest.length > 0) yield rest;
}

/** @param startByte - of the file, where the lines begin. */
function markLines(lines: Buffer, startByte: number, decoding: Decoding): Buffer {
  if (isAscii(lines)) return lines;
  const isWhole = isValidUtf8(lines);
  const utf8 = isWhole ? lines : Buffer.from(lines);
  // No piece of memory for each line: a megabyte may have a million of them.
  for (let from = 0; from < lines.length;) {
    const { to, isOfAscii } = endOfLine(lines, from);
    if (!isOfAscii) {
      const line = lines.subarray(from, to);
      if (isWhole || isValidUtf8(line)) decoding.validLineCount++;
      else {
        const { utf8: right, marked } = markWrongBytes(line);
        right.copy(utf8, from);
        const lineAt = startByte + from;
        for (const { index, value } of marked) decoding.marked.push(lineAt + index, value);
        decoding.wrongLineCount++;
      }
    }
    from = to;
  }
  return utf8;
}

/** Behind the next newline or carriage return: one pass, while two searches would each read to the end of the lines. */
function endOfLine(lines: Buffer, from: number): { to: number; isOfAscii: boolean } {
  let all = 0;
  for (let at = from; at < lines.length; at++) {
    const value = lines[at] as number;
    all |= value;
    if (isLineEnd(value)) return { to: at + 1, isOfAscii: all < 0x80 };
  }
  return { to: lines.length, isOfAscii: all < 0x80 };
}

/** No character of more than one byte has these among them, in any encoding but UTF-16. */
const endOfLines = (bytes: Buffer): number =>
  Math.max(bytes.lastIndexOf(0x0a), bytes.lastIndexOf(0x0d)) + 1;

/** Bytes in the other order are a letter, as U+0A00 or U+0D00. */
function endOfLinesInUtf16(bytes: Buffer, isLittleEndian: boolean): number {
  for (let at = bytes.length - (bytes.length % 2) - 2; at >= 0; at -= 2) {
    const unit = isLittleEndian ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at);
    if (isLineEnd(unit)) return at + 2;
  }
  return 0;
}

const isLineEnd = (value: number): boolean => value === 0x0a || value === 0x0d;

/**
 * Without a byte order mark, which is the first of a file alone. Only UTF-16 has one here: if Node is to keep a mark in
 * Windows-1252, it drops the letter ÿ (0xff) at the start of the bytes.
 */
const decode = (bytes: Buffer, encoding: string, keepsMark: boolean): string =>
  new TextDecoder(encoding, { ignoreBOM: keepsMark && encoding.startsWith('utf-16') }).decode(
    bytes,
  );

/** Windows' encodings of one byte leave some bytes out, which decoders take for control characters. */
const leavesBytesOut = (encoding: string): boolean => encoding.startsWith('windows-');
const LEFT_OUT = /[\x80-\x9f]/;

function isRight(bytes: Buffer, encoding: string): boolean {
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return !leavesBytesOut(encoding) || !LEFT_OUT.test(text);
  } catch {
    return false;
  }
}

/** Decoding byte by byte takes half a second a megabyte, and a line may have eight. So it begins near the place. */
const SEARCH_SIZE_BYTES = 4_096;
/** No character is longer. */
const CHARACTER_SIZE_BYTES_MAX = 8;

/** Start of a block in which the first wrong byte shows, or of the last one; a character may begin in the block before. */
function findWrongBlock(bytes: Buffer, encoding: string): number {
  const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
  let at = 0;
  try {
    for (; at + SEARCH_SIZE_BYTES < bytes.length; at += SEARCH_SIZE_BYTES)
      decoder.decode(bytes.subarray(at, at + SEARCH_SIZE_BYTES), { stream: true });
  } catch {
    // In this block.
  }
  return at;
}

/** Place of the first byte that is no character of the encoding. */
function findWrong(bytes: Buffer, encoding: string): number {
  if (leavesBytesOut(encoding)) {
    const index = new TextDecoder(encoding).decode(bytes).search(LEFT_OUT);
    if (index >= 0) return index;
  }
  const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
  let startedAt = Math.max(0, findWrongBlock(bytes, encoding) - CHARACTER_SIZE_BYTES_MAX);
  decoder.decode(bytes.subarray(0, startedAt), { stream: true });
  try {
    for (let index = startedAt; index < bytes.length; index++) {
      const text = decoder.decode(bytes.subarray(index, index + 1), { stream: true });
      if (text !== '') startedAt = index + 1;
    }
  } catch {
    // The byte that shows it may be the one behind.
  }
  return startedAt;
}
