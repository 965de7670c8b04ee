/**
 * The screen to which a sign-in by an identity provider leads back. It comes from the address bar, which a link of anybody
 * may have filled, so only a path of our own is taken: no scheme, no host, and nothing that a browser turns into one.
 */

const LENGTH_MAX = 2_000;
/** Segments are not empty: `//host` is an address of its own. A backslash is a slash to a browser, and is no character of these. */
const PATH = /^(?:\/|(?:\/[\w.~%!$&'()*+,;=:@-]+)+)(?:\?[\w.~%!$&'()*+,;=:@/?-]*)?$/;
/** A browser resolves them, also when they are encoded. */
const DOTS = /\/(?:\.|%2e){1,2}(?=[/?]|$)/i;
/** Where providers lead back to, and the pages of others. */
const OTHER_PAGES = /^\/(?:sign-in|portal|console|v1|assets)(?:[/?]|$)/;

/** @returns the path with its query, or null where it is none of ours: then the first screen is shown. */
export function safeReturnPath(text: string): string | null {
  const isOurs =
    text.length <= LENGTH_MAX && PATH.test(text) && !DOTS.test(text) && !OTHER_PAGES.test(text);
  return isOurs ? text : null;
}
