/**
 * Lines of CSV (RFC 4180) that people open in spreadsheets: a cell that a spreadsheet would run as a
 * formula gets an apostrophe before it, for it may have come from anybody.
 */

/**
 * Beginnings that a spreadsheet takes for a formula (OWASP, CSV injection), also in full width, which Japanese ones
 * read as the same. A plain negative number is allowed.
 */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const NUMBER = /^-?\d+(?:\.\d+)?$/;
const NEEDS_QUOTES = /[",\r\n]/;

/** One line with its line break. */
export function csvLine(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

function csvCell(text: string): string {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
