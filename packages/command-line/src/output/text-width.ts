/** Texts of tables in the columns of a terminal. Pure. */

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const ASCII = /^[ -~]*$/;
/** Two columns wide: East Asian texts but for their forms of half a width, and emoji. */
const WIDE =
  /^[[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303E\uFF01-\uFF60\uFFE0-\uFFE6]--[\uFF61-\uFFDC]]|\uFE0F/v;

const columnsOf = (grapheme: string): number => (WIDE.test(grapheme) ? 2 : 1);

export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += columnsOf(segment);
  return width;
}

/** At most `width` columns of it, the last of which shows that there is more. A character is never cut in two. */
export function cutToWidth(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let shown = '';
  let left = width - 1;
  for (const { segment } of graphemes.segment(text)) {
    left -= columnsOf(segment);
    if (left < 0) break;
    shown += segment;
  }
  return `${shown}…`;
}

/** Exactly `width` columns, if it is not wider. */
export const paddedTo = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - widthOf(text)));
