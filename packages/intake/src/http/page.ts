import { BASIC_CHALLENGE } from './answer.ts';

export const JSON_TYPE = 'application/json; charset=utf-8';
export const TEXT_TYPE = 'text/plain; charset=utf-8';

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

/** The part of uWebSockets.js' `HttpResponse` that a page uses. Called in a cork. */
interface PageWriter {
  writeStatus(status: string): unknown;
  writeHeader(name: string, value: string): unknown;
  end(body: string, closeConnection: boolean): unknown;
  endWithoutBody(): unknown;
}

const CORS_METHODS = 'GET, POST, PUT, DELETE, OPTIONS';

/**
 * Writes the answer to the preflight request of a browser.
 *
 * @param headers - names of the headers that a page of another origin may send.
 */
export function writePermission(res: PageWriter, headers: string): void {
  res.writeStatus('204 No Content');
  res.writeHeader('X-Content-Type-Options', 'nosniff');
  res.writeHeader('Access-Control-Allow-Origin', '*');
  res.writeHeader('Access-Control-Allow-Methods', CORS_METHODS);
  res.writeHeader('Access-Control-Allow-Headers', headers);
  res.writeHeader('Vary', 'Access-Control-Request-Headers');
  res.writeHeader('Access-Control-Max-Age', '86400');
  res.endWithoutBody();
}

/** @param isLast - the connection ends with the answer. */
export function writePage(res: PageWriter, page: Page, hasBody: boolean, isLast: boolean): void {
  const { cacheSeconds } = page;
  res.writeStatus(page.status);
  res.writeHeader('Content-Type', page.contentType);
  res.writeHeader('X-Content-Type-Options', 'nosniff');
  res.writeHeader('Access-Control-Allow-Origin', '*');
  res.writeHeader(
    'Cache-Control',
    cacheSeconds === undefined ? 'no-store' : `public, max-age=${cacheSeconds}`,
  );
  if (page.authenticate) res.writeHeader('WWW-Authenticate', BASIC_CHALLENGE);
  if (hasBody) res.end(page.body, isLast);
  else endHead(res, Buffer.byteLength(page.body), isLast);
}

/**
 * Ends the answer to a HEAD. The length is written as a header. Given to `endWithoutBody`, uWebSockets.js waits for
 * that many bytes, and the connection is never free for another call, nor closed when idle.
 */
export function endHead(res: PageWriter, sizeBytes: number, isLast: boolean): void {
  res.writeHeader('Content-Length', String(sizeBytes));
  if (isLast) res.writeHeader('Connection', 'close');
  res.endWithoutBody();
}
