/**
 * Start of a file → its first line, and its row separator. The line of names may end in another way than the rows: a
 * program wrote the rows, and a person or another program put the names before them.
 */
import type { FileForm } from '@sluice/database/imports/imports';

type LineEnd = '\n' | '\r' | '\r\n';

interface Line {
  readonly text: string;
  /** Separators outside of quotes. */
  readonly separatorCount: number;
  /** Absent: the text ends first. */
  readonly end?: LineEnd;
}

/** The first line that is not empty, and how rows end if they end as it does. */
export function firstLineOf(text: string): { line: string; rowEnd: FileForm['rowEnd'] } {
  for (const line of linesOf(text, ''))
    if (line.text !== '') return { line: line.text, rowEnd: rowEndAs(line) };
  return { line: '', rowEnd: 'newline' };
}

const rowEndAs = (line: Line): 'newline' | 'return' => (line.end === '\r' ? 'return' : 'newline');

/**
 * The end of the first line ends the rows, and the other line end is part of a cell. `any`: either ends a row, if the
 * start shows no other reading. That is so if no row ends as the names do, or if each line has as many cells as there
 * are names.
 *
 * @param text - from the line of names on.
 */
export function rowEndOf(text: string, separator: string): FileForm['rowEnd'] {
  const lines = [...linesOf(text, separator)].filter((line) => line.text !== '');
  const [names] = lines;
  if (names === undefined) return 'newline';
  const rowEnd = rowEndAs(names);
  // The last line may be cut.
  const rows = lines.slice(1).filter((line) => line.end !== undefined);
  const others = rows.filter((row) => rowEndAs(row) !== rowEnd);
  if (others.length === 0) return rowEnd;
  const isEvenly = rows.every((row) => row.separatorCount === names.separatorCount);
  return others.length === rows.length || isEvenly ? 'any' : rowEnd;
}

/** Lines that end in any way, but for line ends within quotes. */
function* linesOf(text: string, separator: string): Generator<Line, void, undefined> {
  let isQuoted = false;
  let separatorCount = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') isQuoted = !isQuoted;
    else if (isQuoted) continue;
    else if (character === separator) separatorCount++;
    else if (character === '\n' || character === '\r') {
      const end = character === '\r' && text[at + 1] === '\n' ? '\r\n' : character;
      yield { text: text.slice(from, at), separatorCount, end };
      at += end.length - 1;
      from = at + 1;
      separatorCount = 0;
    }
  }
  yield { text: text.slice(from), separatorCount };
}
