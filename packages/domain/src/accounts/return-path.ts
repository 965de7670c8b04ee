/**
 * The screen that opens after a sign-in by an identity provider.
 *
 * It comes from the address bar, which a foreign link may have filled. So only a path of our own is accepted: without
 * scheme and host, and without characters that a browser reads as one.
 */

const LENGTH_MAX = 2_000;
/** Segments are not empty: `//host` is an address of its own. A backslash is a slash to a browser, and is no character of these. */
const PATH = /^(?:\/|(?:\/[\w.~%!$&'()*+,;=:@-]+)+)(?:\?[\w.~%!$&'()*+,;=:@/?-]*)?$/;
/** A browser resolves them, also when they are encoded. */
const DOTS = /\/(?:\.|%2e){1,2}(?=[/?]|$)/i;
/** The paths that providers redirect to, and pages outside the console. */
const OTHER_PAGES = /^\/(?:sign-in|portal|console|v1|assets)(?:[/?]|$)/;

/**
 * @returns the path with its query, or null if it is not one of the console. The console then shows the first screen.
 */
export function safeReturnPath(text: string): string | null {
  const isOurs =
    text.length <= LENGTH_MAX && PATH.test(text) && !DOTS.test(text) && !OTHER_PAGES.test(text);
  return isOurs ? text : null;
}
