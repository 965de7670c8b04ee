/**
 * Texts that Postgres can store, and their length there.
 *
 * `text` and `jsonb` refuse U+0000, and a lone surrogate has no UTF-8: either would fail the whole
 * commit batch. Both can only come from `\u` escapes, so they are rare and the check must be cheap: two
 * native scans take 14 ns on a typical text, a regular expression 28 ns, a loop 32 ns (Node 22). A
 * caller that knows the raw body to be free of them (`ParseContext.hasEscapes`) saves even those.
 */

/** True if Postgres takes the text as it is. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** The text with U+FFFD in place of characters that Postgres refuses. */
export function toStorableText(text: string): string {
  return isStorableText(text) ? text : text.toWellFormed().replaceAll('\0', '\ufffd');
}

/** Length in UTF-8. A lone surrogate counts as the U+FFFD that takes its place. */
export function utf8SizeBytes(text: string): number {
  let sizeBytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    if (unit < 0x800) {
      sizeBytes += 1;
    } else {
      sizeBytes += 2;
      if (isSurrogatePair(unit, text, index)) {
        // Two units make four bytes: two were counted as units, two just now.
        index++;
      }
    }
  }
  return sizeBytes;
}

/** True if the UTF-8 is longer than the bound; looks at the characters only if their number leaves it open. */
export function isLongerThan(text: string, sizeBytesMax: number): boolean {
  if (text.length * 3 <= sizeBytesMax) return false;
  return text.length > sizeBytesMax || utf8SizeBytes(text) > sizeBytesMax;
}

function isSurrogatePair(unit: number, text: string, index: number): boolean {
  return (unit & 0xfc00) === 0xd800 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00;
}
