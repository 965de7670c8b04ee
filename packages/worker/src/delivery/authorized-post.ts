/**
 * Sends an attempt with its webhook's access token, if it has one.
 *
 * All of it is one attempt with one deadline, for which the lane's lease is made. The fetch of a token takes its time
 * from the endpoint's: a request to the token server has half of it at most. A token is kept, so the next attempt has
 * the whole time. If the endpoint answers 401 to a kept token, the token is renewed and the request sent again, once.
 * Without a token the request is not sent, and the attempt has failed with a class of its own.
 *
 * Between `lane-attempts.ts` (step 11) and `http-client.ts` (step 13).
 */
import type { HttpClient } from '../http/http-client.ts';
import type { HttpOutcome } from '../http/http-outcome.ts';
import type { DeliveryPost, TokenSource } from '../lane/endpoint-access.ts';
import { maskSecrets, secretsIn } from '../lane/mask-secrets.ts';
import type { AccessTokens } from './access-tokens.ts';

export interface AuthorizedPostDeps {
  readonly post: HttpClient['post'];
  readonly tokens: Pick<AccessTokens, 'get'>;
  /** Of one attempt. */
  readonly timeoutMs: number;
  /** Never set back. */
  readonly monotonicNow: () => number;
}

/** Of an attempt: so much of its time a token may take. */
export const TOKEN_TIME_SHARE = 0.5;
const UNAUTHORIZED = 401;

export function authorizedPost(
  deps: AuthorizedPostDeps,
): (request: DeliveryPost) => Promise<HttpOutcome> {
  // Most webhooks have no token: their requests go on as they are.
  return (request) =>
    request.tokenSource ? postWithToken(deps, request, request.tokenSource) : deps.post(request);
}

async function postWithToken(
  { post, tokens, timeoutMs, monotonicNow }: AuthorizedPostDeps,
  request: DeliveryPost,
  tokenSource: TokenSource,
): Promise<HttpOutcome> {
  const startedAtMs = monotonicNow();
  const elapsedMs = (): number => Math.round(monotonicNow() - startedAtMs);
  const failed = (message: string): HttpOutcome => ({
    outcome: 'failure',
    failure: 'token_unavailable',
    message,
    status: null,
    head: '',
    body: '',
    durationMs: elapsedMs(),
  });
  const send = async (token: string): Promise<HttpOutcome> => {
    const answer = await post({
      ...request,
      headers: { ...withoutAuthorization(request.headers), authorization: `Bearer ${token}` },
      timeoutMs: Math.max(1, timeoutMs - elapsedMs()),
    });
    return { ...maskSecrets(answer, secretsIn({ authorization: token })), durationMs: elapsedMs() };
  };

  const token = await tokens.get(tokenSource, startedAtMs + timeoutMs);
  if (token.outcome === 'none') return failed(token.message);
  const answer = await send(token.value);
  if (answer.status !== UNAUTHORIZED || token.isFresh) return answer;
  const another = await tokens.get(tokenSource, startedAtMs + timeoutMs, token.number);
  if (another.outcome === 'none')
    return failed(`the endpoint answered 401 to its access token: ${another.message}`);
  return send(another.value);
}

/** The webhook's own headers may have one; names are in lower case. */
function withoutAuthorization(headers: DeliveryPost['headers']): Record<string, string> {
  const { authorization: _, ...others } = headers;
  return others;
}
