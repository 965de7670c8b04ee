/**
 * The results of commands: rows and fields, as aligned columns for people, exact as JSON or YAML, or as CSV. Texts of
 * others are printed so that they cannot drive the terminal, and in CSV no spreadsheet runs them.
 */
import { AppError } from '@sluice/domain/values/errors';
import { csvCells } from '@sluice/domain/value-rules/csv-line';
import { printable, printableJson } from '@sluice/domain/values/printable';
import { cellText } from './cell-text.ts';
import type { Terminal } from './terminal.ts';
import { cutToWidth, paddedTo, widthOf } from './text-width.ts';
import { yamlLines } from './yaml.ts';

export type Row = Readonly<Record<string, unknown>>;

/**
 * One document with all rows, or with columns one row an object.
 *
 * @param columns - of a table and of CSV, unless `--columns` names others. A document has all members.
 * @param none - printed in place of an empty table, with the kind of rows.
 * @throws AppError COMMAND_MISUSED for a column that no row has.
 */
export function writeRows(
  terminal: Terminal,
  given: readonly object[],
  columns: readonly string[],
  none: string,
): void {
  const rows = given as readonly Row[];
  const shown = columnsOf(terminal, rows, columns);
  switch (terminal.format) {
    case 'json':
      terminal.line(printableJson(terminal.columns ? rows.map((row) => pick(row, shown)) : rows));
      return;
    case 'yaml':
      for (const line of yamlLines(
        terminal.columns ? rows.map((row) => pick(row, shown)) : [...rows],
      ))
        terminal.line(line);
      return;
    case 'csv':
      terminal.line(csvLine(shown));
      for (const row of rows) terminal.line(csvLine(shown.map((column) => row[column])));
      return;
    case 'table':
      if (rows.length === 0) terminal.line(none);
      else writeTable(terminal, rows, shown);
  }
}

/**
 * A note that the list does not end with the shown rows.
 *
 * @param next - of the API's answer; empty at the end of the list.
 */
export function noteMore(terminal: Terminal, next: unknown, advice: string): void {
  if (next !== '' && next !== null && next !== undefined)
    terminal.note(`there are more: ${advice}`);
}

/** One document, a line of CSV with its head, or a `name: value` line each, nested ones indented. */
export function writeFields(terminal: Terminal, value: object): void {
  const row = value as Row;
  const shown = terminal.columns ? columnsOf(terminal, [row], []) : undefined;
  const picked = shown ? pick(row, shown) : row;
  switch (terminal.format) {
    case 'json':
      terminal.line(printableJson(picked));
      return;
    case 'yaml':
      for (const line of yamlLines(picked)) terminal.line(line);
      return;
    case 'csv':
      terminal.line(csvLine(Object.keys(picked)));
      terminal.line(csvLine(Object.values(picked)));
      return;
    case 'table':
      writeNested(terminal, picked, '');
  }
}

/**
 * A text that is no JSON, such as CSV: as it came, but for a table, whose terminal it must not drive. JSON has it as one
 * text.
 */
export function writeText(terminal: Terminal, text: string): void {
  if (terminal.format === 'json') return terminal.line(printableJson(text));
  const whole = text.replace(/\r?\n$/, '');
  if (terminal.format !== 'table') return terminal.line(whole);
  for (const line of whole.split(/\r?\n/))
    terminal.line(line.split('\t').map(printable).join('\t'));
}

/**
 * For rows without an end, one after the other: a line of JSON each, a document of YAML, or a line of CSV below a head.
 *
 * @param columns - of CSV.
 * @returns a function that writes the next one; undefined for a table, which is the command's own.
 */
export function documentWriter(
  terminal: Terminal,
  columns: readonly string[],
): ((row: Row) => void) | undefined {
  const shown = terminal.columns ?? columns;
  const picked = (row: Row): Row => (terminal.columns ? pick(row, shown) : row);
  switch (terminal.format) {
    case 'table':
      return undefined;
    case 'json':
      return (row) => terminal.line(printableJson(picked(row)));
    case 'yaml':
      return (row) => {
        terminal.line('---');
        for (const line of yamlLines(picked(row))) terminal.line(line);
      };
    case 'csv':
      terminal.line(csvLine(shown));
      return (row) => terminal.line(csvLine(shown.map((column) => row[column])));
  }
}

function columnsOf(
  terminal: Terminal,
  rows: readonly Row[],
  columns: readonly string[],
): readonly string[] {
  const { columns: wanted } = terminal;
  if (!wanted) return columns;
  const known = new Set([...columns, ...rows.flatMap((row) => Object.keys(row))]);
  const unknown = wanted.find((column) => !known.has(column));
  if (unknown !== undefined && rows.length > 0)
    throw new AppError(
      'COMMAND_MISUSED',
      `there is no column ${unknown}; there are ${[...known].join(', ')}`,
    );
  return wanted;
}

const pick = (row: Row, columns: readonly string[]): Row =>
  Object.fromEntries(columns.map((column) => [column, row[column] ?? null]));

/** A control character is written as an escape, a line break too, so that a row stays a line. */
const csvLine = (cells: readonly unknown[]): string =>
  csvCells(
    cells.map((cell) =>
      cell === null || cell === undefined
        ? null
        : printable(typeof cell === 'string' ? cell : JSON.stringify(cell)),
    ),
  );

const GAP = '  ';
/** A column is made no narrower if the rows do not fit: they are cut at the end instead. */
const COLUMN_WIDTH_MIN = 8;

function writeTable(terminal: Terminal, rows: readonly Row[], columns: readonly string[]): void {
  const nowMs = terminal.now();
  const cells = [
    [...columns],
    ...rows.map((row) => columns.map((column) => cellText(column, row[column], nowMs))),
  ];
  const wanted = columns.map((_, index) =>
    Math.max(...cells.map((row) => widthOf(row[index] ?? ''))),
  );
  const widths = fitted(wanted, terminal.width);
  for (const row of cells) {
    const line = row
      .map((cell, index) => paddedTo(cutToWidth(cell, widths[index] ?? 0), widths[index] ?? 0))
      .join(GAP)
      .trimEnd();
    terminal.line(terminal.width === undefined ? line : cutToWidth(line, terminal.width));
  }
}

/** The widest columns give first, until a row fits. */
function fitted(wanted: readonly number[], width: number | undefined): number[] {
  const widths = [...wanted];
  if (width === undefined) return widths;
  const sum = (): number => widths.reduce((a, b) => a + b, GAP.length * (widths.length - 1));
  for (;;) {
    const widest = Math.max(...widths);
    if (sum() <= width || widest <= COLUMN_WIDTH_MIN) return widths;
    widths[widths.indexOf(widest)] = widest - 1;
  }
}

function writeNested(terminal: Terminal, value: object, indent: string): void {
  const nowMs = terminal.now();
  for (const [name, field] of Object.entries(value)) {
    if (typeof field !== 'object' || field === null || Object.keys(field).length === 0) {
      terminal.line(`${indent}${printable(name)}: ${cellText(name, field, nowMs)}`);
    } else if (Array.isArray(field) && field.every((item) => typeof item !== 'object')) {
      terminal.line(
        `${indent}${printable(name)}: ${field.map((item) => cellText('', item, nowMs)).join(', ')}`,
      );
    } else {
      terminal.line(`${indent}${printable(name)}:`);
      writeNested(terminal, field as object, `${indent}  `);
    }
  }
}
