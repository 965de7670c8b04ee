/** Outputs of a command: the result, notes beside it, and the progress. */
import { styleText } from 'node:util';

/** `--output`; `table` is for people, the others are exact. */
export const OUTPUT_FORMATS = ['table', 'json', 'yaml', 'csv'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

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
  /** Ends the output of `progress`. */
  progressDone(): void;
  /** Begins the result anew at the top, for repeated output; only a blank line elsewhere than on a terminal. */
  clear(): void;
  readonly format: OutputFormat;
  /** `--columns`. Undefined: the command's own. */
  readonly columns: readonly string[] | undefined;
  /** Of the terminal in characters; undefined if rows may be as long as they are. */
  readonly width: number | undefined;
  readonly hasColor: boolean;
  /** Unix milliseconds, for times beside which stands how long ago they are. */
  readonly now: () => number;
}

export type Color = 'green' | 'yellow' | 'red' | 'cyan' | 'gray';

/** `text` in a colour, if the terminal has any. */
export const colored = (terminal: Terminal, color: Color, text: string): string =>
  terminal.hasColor ? styleText(color, text, { validateStream: false }) : text;

/**
 * As much of a line as can be written over: of one that went on in the next row only that row would be.
 *
 * @param columns - of the terminal; 0 if it does not know, as over some connections.
 */
export const withinRow = (text: string, columns: number): string =>
  columns === 0 ? text : text.slice(0, columns - 1);
