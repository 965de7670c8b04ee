/**
 * Asks a token server for an access token: OAuth2 client credentials (RFC 6749 §4.4), as a Bearer token (RFC 6750).
 *
 * The request goes out as those to endpoints do, to the same addresses and no others. Its answer is stored nowhere and
 * quoted in no message, because it holds the token: a message has the status, and the error code of the answer.
 */
import { isSuccessStatus } from '@sluice/domain/delivery/delivery-failure';
import { TOKEN_KEPT_SECONDS_DEFAULT, type OAuth2Client } from '@sluice/domain/delivery/webhook';
import type { HttpClient } from '../http/http-client.ts';
import type { HttpOutcome } from '../http/http-outcome.ts';
import type { TlsIdentity } from '@sluice/platform/outgoing/tls-identity';

export type FetchedToken =
  | {
      readonly outcome: 'token';
      readonly token: string;
      /** From the moment at which it was asked for; 0 if it is good for this one use. */
      readonly lifetimeMs: number;
    }
  /** The message is for the webhook's owner. */
  | { readonly outcome: 'none'; readonly message: string };

/** A day: a change at the token server takes effect after at most that time. */
const LIFETIME_MS_MAX = 86_400_000;
/** One header of a request; many servers take 8 KB of them in all. */
const TOKEN_LENGTH_MAX = 8_000;

/** @param timeoutMs - from the look-up of the server's name to the last byte of its answer. */
export async function fetchToken(
  post: HttpClient['post'],
  client: OAuth2Client,
  tls: TlsIdentity | undefined,
  timeoutMs: number,
): Promise<FetchedToken> {
  const answer = await post({
    endpoint: client.token_url,
    headers: headersOf(client),
    body: bodyOf(client),
    tls,
    timeoutMs,
  });
  if (answer.outcome === 'failure') return none(`the token URL gave no answer: ${answer.message}`);
  return isSuccessStatus(answer.status)
    ? readToken(answer.body)
    : none(`the token URL answered ${answer.status}${errorCodeOf(answer)}`);
}

function headersOf({ client_authentication: place, client_id, client_secret }: OAuth2Client) {
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
  };
  if (place === 'body') return headers;
  // Each in form encoding first (RFC 6749 §2.3.1).
  const pair = [client_id, client_secret].map(encodeURIComponent).join(':');
  return { ...headers, authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

function bodyOf({ scope, audience, ...client }: OAuth2Client): string {
  const { client_id, client_secret } = client;
  return new URLSearchParams({
    grant_type: 'client_credentials',
    ...(scope !== undefined && { scope }),
    ...(audience !== undefined && { audience }),
    ...(client.client_authentication === 'body' && { client_id, client_secret }),
  }).toString();
}

function readToken(body: string): FetchedToken {
  const members = membersOf(body);
  if (!members)
    return none('the answer of the token URL is not a JSON object; correct oauth2.token_url');
  const { access_token: token, token_type: type, expires_in: seconds } = members;
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    return none('the answer of the token URL has no access_token of visible ASCII characters');
  if (token.length > TOKEN_LENGTH_MAX)
    return none(`the access_token of the token URL is longer than ${TOKEN_LENGTH_MAX} characters`);
  if (type !== undefined && (typeof type !== 'string' || type.toLowerCase() !== 'bearer'))
    return none('the token_type of the token URL is not Bearer');
  const given = secondsOf(seconds);
  if (Number.isNaN(given)) return none('the expires_in of the token URL is not a number');
  const lifetimeMs = Math.min(Math.max(0, given * 1_000), LIFETIME_MS_MAX);
  return { outcome: 'token', token, lifetimeMs };
}

/** NaN if it is no number. Some servers send it as a text, or null for an unknown lifetime. */
function secondsOf(given: unknown): number {
  if (given === undefined || given === null) return TOKEN_KEPT_SECONDS_DEFAULT;
  // `Number` makes 0 of an empty text, and each attempt would fetch a token.
  const isNumber = typeof given === 'number' || (typeof given === 'string' && /\d/.test(given));
  return isNumber ? Number(given) : NaN;
}

/** ` (invalid_client)`; empty if the answer has no error code (RFC 6749 §5.2). */
function errorCodeOf({ body }: HttpOutcome): string {
  const code = membersOf(body)?.['error'];
  return typeof code === 'string' && /^[a-z_]{1,60}$/.test(code) ? ` (${code})` : '';
}

function membersOf(body: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = JSON.parse(body) as unknown;
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

const none = (message: string): FetchedToken => ({ outcome: 'none', message });
