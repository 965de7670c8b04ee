/** A plain reader of CSV, by RFC 4180. The fuzz target compares the worker's reader with it. */

/** @param rowEnds - the longest first. @returns the rows without empty lines; undefined if a quote is out of place. */
export function readPlainCsv(
  text: string,
  separator: string,
  rowEnds: readonly string[],
): string[][] | undefined {
  const rows: string[][] = [];
  let cells: string[] = [];
  let at = 0;
  for (;;) {
    const isQuoted = text[at] === '"';
    const cell = isQuoted ? readQuoted(text, at) : readPlain(text, at, [separator, ...rowEnds]);
    if (cell === undefined) return undefined;
    at = cell.end;
    cells.push(cell.value);
    if (at < text.length && text.startsWith(separator, at)) {
      at += separator.length;
      continue;
    }
    const rowEnd = rowEnds.find((each) => text.startsWith(each, at));
    if (rowEnd === undefined && at < text.length) return undefined;
    if (cells.length > 1 || cells[0] !== '' || isQuoted) rows.push(cells);
    if (rowEnd === undefined) return rows;
    cells = [];
    at += rowEnd.length;
  }
}

interface Cell {
  readonly value: string;
  readonly end: number;
}

function readQuoted(text: string, from: number): Cell | undefined {
  const quoted = /"((?:[^"]|"")*)"/y;
  quoted.lastIndex = from;
  const [, inner] = quoted.exec(text) ?? [];
  if (inner === undefined) return undefined;
  return { value: inner.replaceAll('""', '"'), end: quoted.lastIndex };
}

function readPlain(text: string, from: number, ends: readonly string[]): Cell | undefined {
  let end = from;
  while (end < text.length && !ends.some((each) => text.startsWith(each, end))) end++;
  const value = text.slice(from, end);
  return value.includes('"') ? undefined : { value, end };
}
