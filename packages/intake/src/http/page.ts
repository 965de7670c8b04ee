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
