/** First line of a CSV, to show its columns before the upload. Pure. */

/** The names in the first line, by its own separator; empty if it is no text. */
export function columnsOf(head: string): string[] {
  const [line = ''] = head.replace(/^\uFEFF/, '').split(/\r?\n/);
  if (line.includes('\uFFFD') || line.includes('\u0000')) return [];
  const separator = [',', ';', '\t', '|'].toSorted(
    (one, other) => line.split(other).length - line.split(one).length,
  )[0];
  return line.split(separator ?? ',').map((cell) => cell.trim().replaceAll(/^"|"$/g, ''));
}
