/** Pieces of Markdown for the generated pages of `docs/reference`. Pure. */

/** A text as it may stand in a cell of a table: on one line, with its bars kept. */
const cell = (text: string): string => text.replaceAll(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');

/** A text in the type of code; empty for an empty one. */
export const code = (text: string): string => (text === '' ? '' : `\`${text}\``);

/** A table; each row has as many cells as the head. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

/** A page with its blocks apart by an empty line, and the mark of its program. */
export const page = (title: string, ...blocks: readonly string[]): string =>
  `${[`# ${title}`, '<!-- written by `npm run docs` -->', ...blocks].join('\n\n')}\n`;
