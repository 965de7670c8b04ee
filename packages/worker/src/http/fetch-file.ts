/**
 * Fetches a file from a customer's address, piece by piece: an answer of any length takes the memory of one piece. The
 * allowed addresses are the same as for webhooks, by the same egress proxy
 * (`platform/src/outgoing/vetted-connection.ts`). Redirects are not followed for the same reason.
 *
 * One request now and then, whose pieces are wanted at the speed at which they can be stored.
 */
import type { IncomingMessage } from 'node:http';
import { afterPiece, FETCH_TOO_SLOW, FIRST_FETCH_MINUTE } from '@sluice/domain/imports/fetch-pace';
import { reasonOf } from '@sluice/domain/values/errors';
import { ProxyFailure } from '@sluice/platform/outgoing/proxy-tunnel';
import { sendRequest } from '@sluice/platform/outgoing/send-request';
import type { VettedConnector } from '@sluice/platform/outgoing/vetted-connection';

/** Why there is no file; the message is for its owner. `mayPass`: another try could go better. */
export class FetchFault extends Error {
  readonly mayPass: boolean;

  constructor(message: string, mayPass: boolean) {
    super(message);
    this.mayPass = mayPass;
  }
}

const HEAD_TIMEOUT_MS = 30_000;
/** After so long without a byte the fetch counts as broken off. */
export const SILENCE_TIMEOUT_MS = 60_000;
/** How long a URL should stay valid (`ingestion-conventions.md` §7). A slower fetch would only hold a worker up. */
const FETCH_TIMEOUT_MS = 7_200_000;

export interface FetchOptions {
  /** Aborted: the fetch ends at once, as if it had broken off. */
  readonly signal?: AbortSignal;
  /** Of the whole fetch; 2 hours. */
  readonly timeoutMs?: number;
  /** Until the head of the answer is whole; 30 s. */
  readonly headTimeoutMs?: number;
  /** From one byte to the next; 60 s. */
  readonly silenceTimeoutMs?: number;
  /** Called with the `charset` of the answer, if it has one, before its first piece. */
  readonly tellEncoding?: (encoding: string) => void;
  /** Milliseconds that only go forward: for the least pace of the file. */
  readonly monotonicNow?: () => number;
}

/**
 * @throws FetchFault, also in the middle of the pieces. ProxyFailure if the egress proxy is away or refuses. The file's
 * owner cannot change that, and it passes once the operator has acted.
 */
export async function* fetchFile(
  connector: VettedConnector,
  address: string,
  {
    signal,
    timeoutMs = FETCH_TIMEOUT_MS,
    headTimeoutMs = HEAD_TIMEOUT_MS,
    silenceTimeoutMs = SILENCE_TIMEOUT_MS,
    tellEncoding,
    monotonicNow = () => performance.now(),
  }: FetchOptions = {},
): AsyncGenerator<Buffer, void, undefined> {
  const url = URL.parse(address);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new FetchFault('data_file_url is not an http or https URL', false);
  const timeout = AbortSignal.timeout(timeoutMs);
  const response = await sendGet(
    connector,
    url,
    AbortSignal.any([timeout, ...(signal ? [signal] : [])]),
    headTimeoutMs,
  );
  const { statusCode = 0 } = response;
  if (statusCode !== 200) {
    response.destroy();
    const reason = statusCode >= 300 && statusCode < 400 ? ' (redirects are not followed)' : '';
    throw new FetchFault(`the URL answered ${statusCode}${reason}`, statusCode >= 500);
  }
  const coding = response.headers['content-encoding'] ?? '';
  // Empty members and `identity` of the list have no meaning.
  if (!/^[\s,]*(?:identity[\s,]*)*$/i.test(coding)) {
    response.destroy();
    throw new FetchFault(`the URL sends the file as ${coding}; it must be plain CSV`, false);
  }
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(response.headers['content-type'] ?? '');
  if (charset?.[1] !== undefined) tellEncoding?.(charset[1]);
  response.socket.setTimeout(silenceTimeoutMs, () => response.destroy(new Error('silence')));
  let minute = FIRST_FETCH_MINUTE;
  let askedAtMs = monotonicNow();
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      const waitedMs = monotonicNow() - askedAtMs;
      const next = afterPiece(minute, { waitedMs, sizeBytes: piece.length });
      if (next === undefined) throw new FetchFault(FETCH_TOO_SLOW, true);
      minute = next;
      yield piece;
      askedAtMs = monotonicNow();
    }
  } catch (error) {
    if (error instanceof FetchFault) throw error;
    if (timeout.aborted)
      throw new FetchFault(`the file had not come whole within ${timeoutMs / 1_000} s`, false);
    throw new FetchFault(`the file broke off: ${reasonOf(error)}`, true);
  }
}

async function sendGet(
  connector: VettedConnector,
  url: URL,
  signal: AbortSignal,
  headTimeoutMs: number,
): Promise<IncomingMessage> {
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new Error(`no answer within ${headTimeoutMs / 1_000} s`)),
    headTimeoutMs,
  );
  const ending = AbortSignal.any([signal, late.signal]);
  try {
    const headers = { 'accept-encoding': 'identity', 'user-agent': 'Sluice' };
    return await sendRequest(connector, url, { headers, ending });
  } catch (error) {
    if (error instanceof ProxyFailure && !error.mayBeOfTarget) throw error;
    const reason = reasonOf(late.signal.aborted ? late.signal.reason : error);
    throw new FetchFault(`the URL cannot be reached: ${reason}`, true);
  } finally {
    clearTimeout(timer);
  }
}
