/**
 * Requests from the page. The session is a cookie that scripts cannot read. Bodies may hold secrets that are
 * typed or shown once (a pasted token, recovery codes, a new key), so bodies are never kept or logged here, but for the body
 * of a refusal. A call about a workspace names it in a header, which no other page can send.
 */

import type { Call, SendOptions } from './call.ts';
import type { Method } from './operations.ts';
import { isUnattended } from './user-input.ts';

/** A refusal as it came. */
export interface RefusedAnswer {
  readonly text: string;
  readonly headers: Headers;
}

/** A refusal of the API, with the text for the page. */
export class RequestFailed extends Error {
  override readonly name = 'RequestFailed';
  /** 0: no answer came. */
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** Undefined: no answer came, or the call was an upload. */
  readonly answer: RefusedAnswer | undefined;

  constructor(
    message: string,
    given: {
      readonly status: number;
      readonly code: string;
      readonly requestId?: string | undefined;
      readonly retryAfterSeconds?: number | undefined;
      readonly answer?: RefusedAnswer;
    },
  ) {
    super(message);
    this.status = given.status;
    this.code = given.code;
    this.requestId = given.requestId;
    this.retryAfterSeconds = given.retryAfterSeconds;
    this.answer = given.answer;
  }
}

/** In the portal: the link whose page this is, as its address names it. It stands in place of the workspace. */
let portal: string | undefined;
export function callAsPortal(link: string): void {
  portal = link;
}

export const headersOf = ({
  workspaceId,
  idempotencyKey,
}: Omit<SendOptions, 'signal'>): Record<string, string> => ({
  ...(portal !== undefined && { 'x-sluice-portal': portal }),
  ...(portal === undefined &&
    workspaceId !== undefined && { 'x-sluice-workspace': String(workspaceId) }),
  ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
});

/** @throws RequestFailed if the API refuses or does not answer. */
export const request = <Data>(call: Call<Data>, options: SendOptions = {}): Promise<Data> =>
  call.send(options);

/**
 * A call of the console's own, or the description itself. The description has neither, since no program makes such calls. So
 * the screen names the type of the answer.
 */
export const own = <Data = undefined>(
  method: Method,
  path: `/console/${string}` | `/portal/${string}` | '/openapi.json',
  body?: unknown,
): Call<Data> => ({
  method,
  key: JSON.stringify([method, path, body]),
  send: async (options) => {
    const answer = await send(path, { method, body, ...options });
    // A call that ends something answers 200 or 204 without a body.
    const text = await answer.text();
    return (text === '' ? undefined : JSON.parse(text)) as Data;
  },
});

/** A path that no type describes. @returns the answer with its body unread. @throws RequestFailed */
export async function send(
  path: string,
  {
    method,
    body,
    signal,
    ...options
  }: SendOptions & { readonly method: string; readonly body?: unknown },
): Promise<Response> {
  return fetchAnswer(
    new Request(path, {
      method: method.toUpperCase(),
      headers: {
        ...headersOf(options),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      redirect: 'error',
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    }),
  );
}

/** `fetch`, but a refusal is thrown. @throws RequestFailed */
export async function fetchAnswer(asked: Request): Promise<Response> {
  // A session ends after hours without use, and a read that is repeated by a timer is no use.
  if (isUnattended()) asked.headers.set('x-sluice-unattended', '1');
  let answer: Response;
  try {
    answer = await fetch(asked);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new RequestFailed('The API does not answer.', { status: 0, code: 'no_answer' });
  }
  if (answer.status === 401 && !isOpening(asked)) noteSignedOut();
  if (!answer.ok) throw await failureOf(answer);
  return answer;
}

/** A refused sign-in is no end of a session. */
const isOpening = ({ url }: Request): boolean =>
  /^\/(?:console|portal)\/session(?:\/|$)/.test(new URL(url).pathname);

/** Called if the API reports that the session is over. */
let onSignedOut: (() => void) | undefined;
export function watchSignedOut(listener: () => void): void {
  onSignedOut = listener;
}

export function noteSignedOut(): void {
  onSignedOut?.();
}

interface Problem {
  readonly code?: string;
  readonly detail?: string;
  readonly meta?: { readonly request_id?: string };
}

async function failureOf(answer: Response): Promise<RequestFailed> {
  const { status, headers } = answer;
  const text = await answer.text().catch(() => '');
  const body = problemOf(text);
  const retryAfter = Number(headers.get('retry-after') ?? NaN);
  return new RequestFailed(body.detail ?? `The API answered ${status}.`, {
    status,
    code: body.code ?? 'unknown',
    requestId: body.meta?.request_id ?? headers.get('x-request-id') ?? undefined,
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
    answer: { text, headers },
  });
}

/** Empty if the answer is no JSON, such as the page of a proxy. */
function problemOf(text: string): Problem {
  try {
    return (JSON.parse(text) as Problem | null) ?? {};
  } catch {
    return {};
  }
}
