/** Heads of responses: the fields of all, and the fields of a workspace with a rate limit. */
import type { RateStanding } from '../auth/rate-limit.ts';
import type { CutHandle } from '../connections/cut-connections.ts';
import { BASIC_CHALLENGE, type Answer } from './answer.ts';

/** The part of uWebSockets.js' `HttpResponse` that an exchange uses. */
export interface ResponseWriter extends CutHandle {
  onAborted(handler: () => void): unknown;
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): unknown;
  cork(write: () => void): unknown;
  writeStatus(status: string): unknown;
  writeHeader(name: string, value: string): unknown;
  /** False if the socket did not take all of it. */
  write(piece: string | Uint8Array): boolean;
  /** Called when the socket takes bytes again. */
  onWritable(handler: () => boolean): unknown;
  end(body: string, closesConnection: boolean): unknown;
  pause(): unknown;
  resume(): unknown;
}

/** The headers that scripts of other origins may read: when to call again. */
const EXPOSED_HEADERS = 'Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset';

/** Two headers in one call of uWebSockets.js: a call takes 0.2 µs, as much as all that the commit group does for a track call. */
const CONTENT_TYPE_NOT_SNIFFED =
  'application/json; charset=utf-8\r\nX-Content-Type-Options: nosniff';

/** Browsers learn that any origin may read the answer; other clients are spared the headers. */
export function writeHead(res: ResponseWriter, status: string, isCrossOrigin: boolean): void {
  if (status !== '200 OK') res.writeStatus(status);
  res.writeHeader('Content-Type', CONTENT_TYPE_NOT_SNIFFED);
  if (!isCrossOrigin) return;
  res.writeHeader('Access-Control-Allow-Origin', '*');
  res.writeHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS);
}

/** @param standing - undefined: the workspace has no rate limit. */
export function writeAnswerHead(
  res: ResponseWriter,
  { status, retryAfterSeconds, authenticate }: Answer,
  isCrossOrigin: boolean,
  standing: RateStanding | undefined,
): void {
  writeHead(res, status, isCrossOrigin);
  if (retryAfterSeconds !== undefined) res.writeHeader('Retry-After', String(retryAfterSeconds));
  if (standing !== undefined) writeStanding(res, standing);
  if (authenticate) res.writeHeader('WWW-Authenticate', BASIC_CHALLENGE);
}

/**
 * The three fields that client libraries read today. Fewer of them read the later drafts' `RateLimit: "name";r=…;t=…`.
 */
function writeStanding(res: ResponseWriter, standing: RateStanding): void {
  res.writeHeader('RateLimit-Limit', String(standing.limit));
  res.writeHeader('RateLimit-Remaining', String(standing.remaining));
  res.writeHeader('RateLimit-Reset', String(standing.resetSeconds));
}
