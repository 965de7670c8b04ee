/** The parameters of a path and of a query, decoded. Before: `server.ts`. */

/** What uWebSockets.js has of a request. */
interface RequestLine {
  getParameter(index: number): string | undefined;
  getQuery(name: string): string | undefined;
}

export const NO_PARAMETERS: readonly string[] = [];

/** Those of the path, then those of the query. Undefined where the path is not valid percent-encoding of UTF-8. */
export function readParameters(
  request: RequestLine,
  count: number,
  query: readonly string[],
): readonly string[] | undefined {
  try {
    const encoded = Array.from({ length: count }, (_, index) => request.getParameter(index) ?? '');
    // Bytes that are not UTF-8 all come as this character: two people would become one.
    if (encoded.some((text) => text.includes('\ufffd'))) return undefined;
    const parameters = encoded.map(decodeURIComponent);
    for (const name of query) parameters.push(request.getQuery(name) ?? '');
    return parameters;
  } catch {
    return undefined;
  }
}
