/**
 * Lines of a stream: the same lines for every cut, at most as long as the bound, without a loss, and numbers without a
 * gap.
 */
import { deepEqual } from 'node:assert/strict';
import { LineSplitter } from '@sluice/intake/stream/split-lines';
import { isBlank } from '@sluice/intake/stream/stream-line';
import { cut, type FuzzTarget } from '../fuzz-target.ts';

const LINE_BYTES_MAX = 40;

interface ReadLine {
  readonly number: number;
  readonly text: string | undefined;
}

/** Blank lines are passed over, so their white space is not seen. */
const shown = (text: string): string => (/^[ \t\r]*$/.test(text) ? '' : text);

function expectedLines(input: Buffer): ReadLine[] {
  const lines = input.toString('latin1').split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line, index) => ({
    number: index + 1,
    text: line.length > LINE_BYTES_MAX ? undefined : shown(line),
  }));
}

function readLines(pieces: readonly Buffer[], blankMax: number): ReadLine[] {
  const splitter = new LineSplitter(LINE_BYTES_MAX, 1);
  const lines: ReadLine[] = [];
  let nextNumber = 1;
  const pass = (): void => {
    for (let passed = splitter.passBlank(blankMax); passed > 0; passed--)
      lines.push({ number: nextNumber++, text: '' });
  };
  for (const piece of pieces) {
    const lent = Buffer.from(piece);
    splitter.add(lent);
    pass();
    for (let line = splitter.next(); line; line = splitter.next()) {
      lines.push(toRead(line));
      nextNumber = line.number + 1;
      pass();
    }
    lent.fill(0x78);
  }
  const last = splitter.last();
  if (last) lines.push(toRead(last));
  return lines;
}

function toRead({
  number,
  bytes,
  isTooLarge,
}: {
  number: number;
  bytes: Uint8Array;
  isTooLarge: boolean;
}) {
  isBlank(bytes);
  return { number, text: isTooLarge ? undefined : shown(Buffer.from(bytes).toString('latin1')) };
}

/** @public `scripts/fuzz.ts` imports it by the file's name. */
export const target: FuzzTarget = {
  seeds: ['{"a":1}\n{"b":2}\n', '\n\n\n{"a":1}', `${'x'.repeat(41)}\n${'y'.repeat(40)}\r\n`],
  words: ['\n', '\r\n', ' \t\n', '\n\n\n', 'x'.repeat(39), 'x'.repeat(41)],
  run(input, random) {
    const blankMax = Math.floor(random() * 4);
    deepEqual(readLines(cut(input, random), blankMax), expectedLines(input));
  },
};
