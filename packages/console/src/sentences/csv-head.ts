/** First line of a CSV, to show its columns before the upload. Pure. */

const SEPARATORS = [',', ';', '\t', '|'];

/** The names in the first line, by its own separator; empty if it is no text. */
export function columnsOf(head: string): string[] {
  const text = head.replace(/^\uFEFF/, '');
  const [line = ''] = text.split(/\r?\n/);
  if (line.includes('\uFFFD') || line.includes('\u0000')) return [];
  const [cells = []] = SEPARATORS.map((separator) => cellsOf(text, separator)).toSorted(
    (one, other) => other.length - one.length,
  );
  return cells;
}

/** Of the first line. Between quotes a separator and a line end are text, and a doubled quote is one. */
function cellsOf(text: string, separator: string): string[] {
  const cells: string[] = [];
  let cell = '';
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? '';
    if (isQuoted) {
      if (character !== '"') cell += character;
      else if (text[at + 1] === '"') cell += text[++at];
      else isQuoted = false;
    } else if (character === separator) {
      cells.push(cell.trim());
      cell = '';
    } else if (character === '\n') break;
    else if (character === '"' && cell.trim() === '') isQuoted = true;
    else cell += character;
  }
  return [...cells, cell.trim()];
}
