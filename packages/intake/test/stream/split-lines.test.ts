import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineSplitter } from '../../src/stream/split-lines.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const SIZE_BYTES_MAX = 8;

/** White space alone has no meaning, and lines that are passed over are not read. */
const shown = (text: string): string => (/^[ \t\r]*$/.test(text) ? '' : text);

/** The lines of the bytes when they come in pieces of these sizes. */
function split(bytes: Uint8Array, sizes: readonly number[], firstLine = 1, passedMax = 0) {
  const splitter = new LineSplitter(SIZE_BYTES_MAX, firstLine);
  const lines: [number: number, text: string | null][] = [];
  const take = (line: ReturnType<LineSplitter['next']>) => {
    if (line)
      lines.push([line.number, line.isTooLarge ? null : shown(Buffer.from(line.bytes).toString())]);
    return line !== undefined;
  };
  const piece = Buffer.alloc(bytes.length);
  let position = 0;
  for (let turn = 0; position < bytes.length; turn++) {
    const end = Math.min(bytes.length, position + (sizes[turn % sizes.length] ?? 1));
    // One buffer for all pieces, as sockets do: kept parts of a piece must be copies.
    piece.set(bytes.subarray(position, end));
    splitter.add(piece.subarray(0, end - position));
    do {
      const count = splitter.passBlank(passedMax);
      for (let passed = 0; passed < count; passed++)
        lines.push([(lines.at(-1)?.[0] ?? firstLine - 1) + 1, '']);
    } while (take(splitter.next()));
    position = end;
  }
  take(splitter.last());
  return lines;
}

test('lines come out as they went in for any cuts of the pieces, also beside a line over the bound', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constant(''), fc.stringMatching(/^[a-z]{0,12}$|^[ \t\r]{1,12}a?$/))),
      fc.boolean(),
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }),
      fc.integer({ min: 0, max: 3 }),
      (texts, endsWithNewline, sizes, passedMax) => {
        const body = texts.join('\n') + (endsWithNewline && texts.length > 0 ? '\n' : '');
        const expected = texts.map((text, index): [number, string | null] => [
          index + 7,
          text.length > SIZE_BYTES_MAX ? null : shown(text),
        ]);
        // Without its newline an empty last line is no line.
        if (!endsWithNewline && texts.at(-1) === '') expected.pop();
        expect(split(Buffer.from(body), sizes, 7, passedMax)).toEqual(expected);
      },
    ),
  );
});

// Lines of "\r" alone took 80 times as long as empty ones: nine streams of them took all time of a process.
test.each([['\n'], ['\r\n'], [' \t\r\n']])('lines of %j are not read one by one', (text) => {
  const splitter = new LineSplitter(SIZE_BYTES_MAX, 1);
  const bytes = Buffer.alloc(65_536, text);
  splitter.add(bytes);
  const lineCount = Math.floor(bytes.length / text.length);
  expect(splitter.passBlank(lineCount - 1)).toBe(lineCount - 1);
  expect(splitter.passBlank(2)).toBe(1);
  expect(splitter.next()).toBeUndefined();
});

// Streams that brought their lines byte by byte held a hundred times the bytes of those.
test('begun lines that come byte by byte hold little more memory than their size', () => {
  const sizeBytes = 30_000;
  const splitters = Array.from({ length: 20 }, () => new LineSplitter(32_768, 1));
  const one = new Uint8Array([0x61]);
  const held = () => {
    collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = held();
  for (const splitter of splitters)
    for (let count = 0; count < sizeBytes; count++) {
      splitter.add(one);
      splitter.next();
    }
  // Kept one by one, they are 80 MB.
  expect(held() - before).toBeLessThan(10_000_000);
  for (const splitter of splitters) expect(splitter.last()?.bytes).toHaveLength(sizeBytes);
});
