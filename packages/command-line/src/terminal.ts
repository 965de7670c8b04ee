/**
 * What the commands write: JSON where it is asked for, else aligned columns for people. What others wrote is
 * printed so that it cannot drive the terminal.
 */
import { styleText } from 'node:util';
import { printable, printableJson } from '@sluice/domain/values/printable';

export interface Terminal {
  /** A line of the result; texts of others in it are `printable`. */
  line(text: string): void;
  /** A line beside the result. */
  note(text: string): void;
  /**
   * Beside the result: how far it is. `text` is rewritten in place on a terminal; elsewhere `counted` is a line of JSON now
   * and then, so that a log stays short.
   */
  progress(text: string, counted: Readonly<Record<string, number | string | null>>): void;
  /** Ends what `progress` wrote. */
  progressDone(): void;
  readonly isJson: boolean;
  readonly hasColor: boolean;
}

export type Color = 'green' | 'yellow' | 'red' | 'cyan' | 'gray';

/** `text` in a colour, where the terminal has any. */
export const colored = (terminal: Terminal, color: Color, text: string): string =>
  terminal.hasColor ? styleText(color, text, { validateStream: false }) : text;

/**
 * As much of a line as can be written over: of one that went on in the next row only that row would be.
 *
 * @param columns - of the terminal; 0 where it does not know, as over some connections.
 */
export const withinRow = (text: string, columns: number): string =>
  columns === 0 ? text : text.slice(0, columns - 1);

/** One JSON document, or with columns one row an object. */
export function writeRows(
  terminal: Terminal,
  rows: readonly Readonly<Record<string, unknown>>[],
  columns: readonly string[],
): void {
  if (terminal.isJson) {
    terminal.line(printableJson(rows));
    return;
  }
  if (rows.length === 0) {
    terminal.line('nothing');
    return;
  }
  const cells = [columns, ...rows.map((row) => columns.map((column) => textOf(row[column])))];
  const widths = columns.map((_, index) =>
    Math.max(...cells.map((row) => (row[index] ?? '').length)),
  );
  for (const row of cells) {
    terminal.line(
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  }
}

/** One JSON document, or a `name: value` line each, nested ones indented. */
export function writeFields(terminal: Terminal, value: object, indent = ''): void {
  if (terminal.isJson) {
    terminal.line(printableJson(value));
    return;
  }
  for (const [name, field] of Object.entries(value)) {
    if (typeof field !== 'object' || field === null || Object.keys(field).length === 0) {
      terminal.line(`${indent}${printable(name)}: ${textOf(field)}`);
    } else if (Array.isArray(field) && field.every((item) => typeof item !== 'object')) {
      terminal.line(`${indent}${printable(name)}: ${field.map(textOf).join(', ')}`);
    } else {
      terminal.line(`${indent}${printable(name)}:`);
      writeFields(terminal, field as object, `${indent}  `);
    }
  }
}

/** Times (`…_at` in Unix seconds, `…_at_ms`) stay numbers here: scripts read them, and `--json` is exact. */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (typeof value === 'object' && Object.keys(value).length === 0) return '-';
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
}
