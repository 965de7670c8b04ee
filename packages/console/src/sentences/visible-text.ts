/** Text of others, with visible control characters. Pure. */

/**
 * Control characters, and characters that turn the direction of the text around them, as JSON writes them. Line ends
 * and tabs stay.
 */
export function visibleText(text: string): string {
  return text.replaceAll(
    // oxlint-disable-next-line no-control-regex -- They are what is looked for.
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
