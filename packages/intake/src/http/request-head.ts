/**
 * Line and head of a request: the fields that intake reads and refuses.
 *
 * uWebSockets.js accepts two different `Content-Length` headers (the first wins) and reads any `Transfer-Encoding` as
 * chunked (`xchunked`, `gzip, chunked`). If two readers of one connection disagree about the end of a body, requests
 * can be smuggled, so both are refused here. So is a second `Host`: the pages for browsers are made for the first one,
 * and a cache in front may keep them for the other. So is a second `Authorization`, of which a proxy may have checked
 * the other.
 *
 * Before: `server.ts`. After: `exchange.ts`.
 */
import { FORWARDING_HEADERS } from '@sluice/domain/accounts/demo-calls';

/** The headers that intake reads, and those by which published clients mark a retry. */
const CORS_HEADERS =
  'Authorization, Content-Type, Content-Encoding, X-Strict-Mode, X-Retry-Count, X-Request-Id, Traceparent, Tracestate';

/** Names of headers, as browsers list them. */
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]{1,100}(?:[ \t]*,[ \t]*[\w!#$%&'*+.^`|~-]{1,100}){0,49}$/;

/**
 * The headers that a browser may add to a call from another origin: all headers that it asks for. Each client has some
 * of its own (`AnonymousId`), intake ignores unknown ones, and a call has to bring its own credentials.
 *
 * @param asked - `Access-Control-Request-Headers`; empty if it is absent.
 */
export const allowedHeaders = (asked: string): string =>
  HEADER_NAMES.test(asked) ? asked : CORS_HEADERS;

/** The fields of a request's head that intake reads. */
export class Head {
  authorization = '';
  authorizationCount = 0;
  contentEncoding = '';
  strictMode = '';
  transferEncoding = '';
  transferEncodingCount = 0;
  contentLengthCount = 0;
  isContentLengthEmpty = false;
  host = '';
  hostCount = 0;
  isForwarded = false;
  isCrossOrigin = false;

  clear(): void {
    this.authorization = '';
    this.authorizationCount = 0;
    this.contentEncoding = '';
    this.strictMode = '';
    this.transferEncoding = '';
    this.transferEncodingCount = 0;
    this.contentLengthCount = 0;
    this.isContentLengthEmpty = false;
    this.host = '';
    this.hostCount = 0;
    this.isForwarded = false;
    this.isCrossOrigin = false;
  }
}

/** The part of uWebSockets.js' `HttpRequest` that a head is read from; names are in lower case. */
interface HeaderSource {
  forEach(each: (name: string, value: string) => void): void;
}

/** The head that is being read: uWebSockets.js calls back before `forEach` returns, so one function serves all calls. */
let reading = new Head();
const readEach = (name: string, value: string): void => readHeader(reading, name, value);

export function readHead(request: HeaderSource): Head {
  reading = new Head();
  request.forEach(readEach);
  return reading;
}

const callHead = new Head();

/**
 * Reads the head of a call, always into the same object: another one for each call takes 0.1 µs of its 7.
 *
 * @returns the head, valid until the next one is read. Copy its fields at once.
 */
export function readCallHead(request: HeaderSource): Head {
  callHead.clear();
  reading = callHead;
  request.forEach(readEach);
  return callHead;
}

const FORWARDING: ReadonlySet<string> = new Set(FORWARDING_HEADERS);
/** By length: 1 if one of them is so long. */
const FORWARDING_LENGTHS = new Uint8Array(256);
for (const { length } of FORWARDING_HEADERS) FORWARDING_LENGTHS[length] = 1;

/**
 * By the name's length first. Each name comes as a new string: comparing four of them with all twenty names took 0.2 µs
 * of a call's 13.
 */
function readHeader(head: Head, name: string, value: string): void {
  const { length } = name;
  switch (length) {
    case 4:
      if (name !== 'host') break;
      head.host = value;
      head.hostCount++;
      return;
    case 6:
      if (name !== 'origin') break;
      head.isCrossOrigin = true;
      return;
    case 13:
      if (name === 'authorization') {
        head.authorization = value;
        head.authorizationCount++;
      } else if (name === 'x-strict-mode') head.strictMode = value;
      else break;
      return;
    case 14:
      if (name !== 'content-length') break;
      head.contentLengthCount++;
      if (value === '') head.isContentLengthEmpty = true;
      return;
    case 16:
      if (name !== 'content-encoding') break;
      // Two lines of a list are one list.
      head.contentEncoding =
        head.contentEncoding === '' ? value : `${head.contentEncoding},${value}`;
      return;
    case 17:
      if (name !== 'transfer-encoding') break;
      head.transferEncoding = value;
      head.transferEncodingCount++;
      return;
  }
  if (FORWARDING_LENGTHS[length] === 1 && FORWARDING.has(name)) head.isForwarded = true;
}

/**
 * A name, an address or one of IPv6 in brackets, with or without a port (RFC 9110 §7.2); empty from a client without a
 * name.
 */
const HOST = /^(?:[\w.~%!$&'()*+;=-]*|\[[\da-f.:]+\])(?::\d*)?$/i;
/** A source's calls come in a row; the expression takes 0.05 µs more. */
let lastHost = '';

function isHost(text: string): boolean {
  if (text === lastHost) return true;
  if (!HOST.test(text)) return false;
  lastHost = text;
  return true;
}

/** The reason for which the end of the request's body, or its host, is uncertain; undefined if both are certain. */
export function framingProblem(found: Head): string | undefined {
  if (found.contentLengthCount > 1) return 'Content-Length is repeated';
  if (found.isContentLengthEmpty) return 'Content-Length is empty';
  if (found.transferEncodingCount > 1) return 'Transfer-Encoding is repeated';
  if (found.transferEncodingCount === 1 && found.transferEncoding.toLowerCase() !== 'chunked') {
    return 'a Transfer-Encoding other than chunked is not supported';
  }
  if (found.hostCount > 1) return 'Host is repeated';
  if (!isHost(found.host)) return 'Host is not a host';
  if (found.authorizationCount > 1) return 'Authorization is repeated; send it once';
  return undefined;
}

/** The part of uWebSockets.js' `HttpRequest` that has the path and the query. */
interface RequestLine {
  getParameter(index: number): string | undefined;
  getQuery(name: string): string | undefined;
}

export const NO_PARAMETERS: readonly string[] = [];

/**
 * The decoded parameters of the path, then of the query. Undefined if the path is not valid percent-encoding of UTF-8.
 */
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
