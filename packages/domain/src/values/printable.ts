/**
 * Makes texts of others safe for an operator's terminal.
 *
 * A name or an attribute is any text of its sender, and a terminal obeys the text it shows. Escape sequences can clear
 * it, rename it, or write into the next input, and marks of direction can reorder a line. Here they are shown as
 * escapes.
 *
 * Used for output that people read: `sluice`, the operator's scripts, the log of `npm start`.
 */

/**
 * C0, DEL and C1; marks, embeddings and isolates of direction; separators of lines; halves of pairs. The joiners
 * (U+200C, U+200D) stay: scripts and emoji are written with them.
 */
const DRIVES_A_TERMINAL =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]|\p{Surrogate}/gu;

/** `text` as one line that cannot drive a terminal: control characters are written like `\u001b`. */
export const printable = (text: string): string =>
  text.replace(
    DRIVES_A_TERMINAL,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** JSON of `value` in one line, which `JSON.parse` reads as ever: only within texts is there anything to escape. */
export const printableJson = (value: unknown): string => printable(JSON.stringify(value));
