/**
 * Lines of CSV (RFC 4180) that people open in spreadsheets. Pure.
 *
 * A spreadsheet runs a cell that begins like a formula, and its text may have come from anybody. Such a cell gets an
 * apostrophe before it, which spreadsheets show as text. So CSV is for reading; JSON keeps every character.
 */

/**
 * Beginnings that a spreadsheet takes for a formula (OWASP, CSV injection), also in full width, which Japanese ones
 * read as the same. A plain negative number is allowed.
 */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const NUMBER = /^-?\d+(?:\.\d+)?$/;
const NEEDS_QUOTES = /[",\r\n]/;

export type CsvCell = string | number | null;

/** One line with its line break. */
export const csvLine = (cells: readonly CsvCell[]): string => `${csvCells(cells)}\r\n`;

/** One line without its line break. Null is an empty cell. */
export const csvCells = (cells: readonly CsvCell[]): string => cells.map(csvCell).join(',');

function csvCell(cell: CsvCell): string {
  const text = cell === null ? '' : String(cell);
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
