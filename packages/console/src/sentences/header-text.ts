/** Headers of a webhook, between the API and a form's lines. */
import { linesOf } from './subscription-text.ts';

/** Name → value; in place of a stored value the API shows a hint. */
export type Headers = Readonly<Record<string, string>>;

/** One header a line: `x-team: shop`. */
export const headerLines = (headers: Headers): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');

/**
 * Reads lines as {@link headerLines} writes them. The API checks names and values.
 *
 * @returns undefined if a line is no header, or names one again: an object would keep the last alone.
 */
export function headersOf(text: string): Headers | undefined {
  const entries = linesOf(text).map((line) => {
    const colon = line.indexOf(':');
    return colon < 1
      ? undefined
      : ([line.slice(0, colon).trim(), line.slice(colon + 1).trim()] as const);
  });
  const names = new Set(entries.map((entry) => entry?.[0].toLowerCase()));
  if (names.has(undefined) || names.size < entries.length) return undefined;
  return Object.fromEntries(entries.filter((entry) => entry !== undefined));
}

/**
 * The headers to send from a form: absent if they stay, all of them if they differ.
 *
 * @param shown - the text that the form began with.
 * @param isElsewhere - to another server. Stored values are not sent there, and their hints are no values.
 * @returns undefined if the lines are no headers.
 */
export function changedHeaders(
  text: string,
  shown: string,
  isElsewhere: boolean,
): { readonly headers?: Headers } | undefined {
  if (text === shown) return isElsewhere && shown !== '' ? { headers: {} } : {};
  const headers = headersOf(text);
  return headers && { headers };
}
