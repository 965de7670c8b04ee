/**
 * JSON with its numbers as they are written. A program rounds a number of more than 16 digits, so a viewer would show
 * another number than the one that was sent. Pure.
 */

/** Newer than the compiler's library; a browser without it rounds. */
interface NewerJson {
  readonly rawJSON?: (text: string) => object;
  readonly isRawJSON?: (value: unknown) => boolean;
}

const { rawJSON, isRawJSON } = JSON as NewerJson;

/** A number that is written in another way than a program writes it. `JSON.stringify` gives its text. */
export const isExactNumber = (value: unknown): boolean => isRawJSON?.(value) === true;

/** @throws SyntaxError if the text is no JSON */
export function parseExact(text: string): unknown {
  const keep = (_name: string, value: unknown, context?: { readonly source?: string }): unknown =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? (rawJSON?.(context.source) ?? value)
      : value;
  return JSON.parse(text, keep) as unknown;
}
