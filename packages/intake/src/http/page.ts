/** The answer to a GET of something that is no call: health, metrics, the browser's pages. */
export interface Page {
  readonly status: string;
  readonly contentType: string;
  readonly body: string;
  /** Seconds that caches may keep it; absent if they may not. */
  readonly cacheSeconds?: number;
  /** With 401: which credentials are asked for. */
  readonly authenticate?: boolean;
}

export interface Asked {
  readonly host: string;
  /** The header; empty if it is absent. */
  readonly authorization: string;
  /** True if the demo's credentials may be used for the call. */
  readonly mayUseDemo: boolean;
}

/**
 * Makes the page.
 *
 * @param parameters - of the path.
 * @param asked - by whom and of which host.
 * @param query - the value of a query parameter, empty if it is absent; to be called before the first `await`.
 */
export type PageOf = (
  parameters: readonly string[],
  asked: Asked,
  query: (name: string) => string,
) => Promise<Page> | Page;
