/** The answer to a GET of something that is no call: health, metrics, the browser's pages. */
export interface Page {
  readonly status: string;
  readonly contentType: string;
  readonly body: string;
  /** Seconds that caches may keep it; absent: not at all. */
  readonly cacheSeconds?: number;
  /** With 401: which credentials are asked for. */
  readonly authenticate?: boolean;
}

/**
 * Makes the page.
 *
 * @param parameters - of the path.
 * @param authorization - the header; empty where there is none.
 * @param query - the value of a query parameter, empty where it is absent; to be called before the first `await`.
 */
export type PageOf = (
  parameters: readonly string[],
  host: string,
  authorization: string,
  query: (name: string) => string,
) => Promise<Page> | Page;
