/** Where a command writes: the result, what stands beside it, and how far it is. */
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
  /** Ends what `progress` wrote. */
  progressDone(): void;
  /** Begins the result anew at the top, for what is shown again and again; no more than a blank line elsewhere than on a terminal. */
  clear(): void;
  readonly format: OutputFormat;
  /** `--columns`; undefined: those of the command. */
  readonly columns: readonly string[] | undefined;
  /** Of the terminal in characters; undefined if rows may be as long as they are. */
  readonly width: number | undefined;
  readonly hasColor: boolean;
  /** Unix milliseconds, for times beside which stands how long ago they are. */
  readonly now: () => number;
}

export type Color = 'green' | 'yellow' | 'red' | 'cyan' | 'gray';

/** `text` in a colour, where the terminal has any. */
export const colored = (terminal: Terminal, color: Color, text: string): string =>
  terminal.hasColor ? styleText(color, text, { validateStream: false }) : text;

/**
 * As much of a line as can be written over: of one that went on in the next row only that row would be.
 *
 * @param columns - of the terminal; 0 if it does not know, as over some connections.
 */
export const withinRow = (text: string, columns: number): string =>
  columns === 0 ? text : text.slice(0, columns - 1);
