/**
 * What intake reads of a request's head, and what it refuses there.
 *
 * uWebSockets.js accepts two different `Content-Length` headers (the first wins) and reads any
 * `Transfer-Encoding` as chunked (`xchunked`, `gzip, chunked`). Two readers of one connection that
 * disagree about where a body ends is how requests are smuggled, so both are refused here. So is a
 * second `Host`: the pages for browsers are made for the first one, and a cache in front may keep
 * them for the other.
 *
 * Before: `server.ts`. After: `exchange.ts`.
 */

/**
 * The headers that browsers may add to a call from another origin: all that intake reads, and those by which
 * published clients mark a retry.
 */
export const CORS_HEADERS =
  'Authorization, Content-Type, Content-Encoding, X-Strict-Mode, X-Retry-Count, X-Request-Id, Traceparent, Tracestate';

/** What is read of a request's head. One object for all: it is filled and used before the handler returns. */
class Head {
  authorization = '';
  contentEncoding = '';
  strictMode = '';
  transferEncoding = '';
  transferEncodingCount = 0;
  contentLengthCount = 0;
  isContentLengthEmpty = false;
  hostCount = 0;
  isCrossOrigin = false;

  clear(): void {
    this.authorization = '';
    this.contentEncoding = '';
    this.strictMode = '';
    this.transferEncoding = '';
    this.transferEncodingCount = 0;
    this.contentLengthCount = 0;
    this.isContentLengthEmpty = false;
    this.hostCount = 0;
    this.isCrossOrigin = false;
  }
}

/** Valid from `clear` to the end of the handler. */
export const head = new Head();

/** For `req.forEach`; names are in lower case. */
export function readHeader(name: string, value: string): void {
  switch (name) {
    case 'host':
      head.hostCount++;
      break;
    case 'origin':
      head.isCrossOrigin = true;
      break;
    case 'authorization':
      head.authorization = value;
      break;
    case 'x-strict-mode':
      head.strictMode = value;
      break;
    case 'content-length':
      head.contentLengthCount++;
      if (value === '') head.isContentLengthEmpty = true;
      break;
    case 'content-encoding':
      head.contentEncoding = value;
      break;
    case 'transfer-encoding':
      head.transferEncoding = value;
      head.transferEncodingCount++;
      break;
  }
}

/** Why nobody can tell where the request's body ends, or whom it is for; undefined where that is certain. */
export function framingProblem(found: Head): string | undefined {
  if (found.contentLengthCount > 1) return 'Content-Length is repeated';
  if (found.isContentLengthEmpty) return 'Content-Length is empty';
  if (found.transferEncodingCount > 1) return 'Transfer-Encoding is repeated';
  if (
    found.transferEncodingCount === 1 &&
    found.transferEncoding.trim().toLowerCase() !== 'chunked'
  ) {
    return 'a Transfer-Encoding other than chunked is not supported';
  }
  if (found.hostCount > 1) return 'Host is repeated';
  return undefined;
}
