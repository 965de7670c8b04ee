/**
 * The API as the commands use it: a bearer key, JSON, and errors with the next action.
 *
 * Used by every command that reads or changes something; `tail.ts` reads a stream by itself.
 */
import { AppError, type ErrorCode, reasonOf } from '@sluice/domain/values/errors';
import type { JsonObject } from '@sluice/domain/values/json';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export interface ApiClient {
  /**
   * @returns an empty object for an answer without a body.
   * @throws AppError COMMAND_FAILED with the API's message, COMMAND_NOT_ALLOWED if the key may not, COMMAND_NOT_REACHED
   *   if it cannot be reached; with a cause if that may pass by itself.
   */
  request(method: Method, path: string, body?: JsonObject): Promise<JsonObject>;
  /** As `request`, for a path whose answer may be another text than JSON: the text then. @throws as `request` */
  requestAny(method: Method, path: string, body?: JsonObject): Promise<JsonObject | string>;
  /** Sends a body that may take long: only `signal` of the options ends it. @throws as `request` */
  upload(path: string, contentType: string, body: AsyncIterable<Uint8Array>): Promise<JsonObject>;
  /** An answer whose body is still to come. */
  open(path: string, signal: AbortSignal): Promise<Response>;
}

export interface ApiClientOptions {
  readonly url: string;
  /** Undefined if the profile lacks it: each call is refused with the advice. */
  readonly key: string | undefined;
  /** Advice if the API does not know the key. */
  readonly keyAdvice: string;
  /** Advice if the path names an account that is not the key's. */
  readonly accountAdvice?: string;
  /** Aborted by Ctrl-C: the client then waits for no answer. */
  readonly signal: AbortSignal;
  /** Called now and then for an answer that takes more than two seconds; undefined once it is there. */
  readonly onWait?: (waitedMs: number | undefined) => void;
}

const TIMEOUT_MS = 30_000;
const SILENT_MS = 2_000;
const WAIT_SHOWN_INTERVAL_MS = 500;

/** Characters that a header can carry; `fetch` would call it unreachable otherwise. */
const KEY = /^[\x21-\x7E]*$/;

export function createApiClient(options: ApiClientOptions): ApiClient {
  const { url, key, keyAdvice, signal: stopping } = options;
  const send = async (path: string, init: RequestInit): Promise<Response> => {
    if (key === undefined)
      throw new AppError('COMMAND_NOT_ALLOWED', `the profile has no such key; ${keyAdvice}`);
    if (!KEY.test(key))
      throw new AppError(
        'COMMAND_NOT_ALLOWED',
        `the key does not have the form of a key; ${keyAdvice}`,
      );
    const headers = {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      ...(init.headers as Readonly<Record<string, string>> | undefined),
    };
    let answer: Response;
    try {
      answer = await fetch(`${url}${path}`, { ...init, headers });
    } catch (cause) {
      throw new AppError(endingOf(stopping), whyNoAnswer(cause, init.method), { cause });
    }
    if (answer.ok) return answer;
    // A gateway gives up an API that may still be at it.
    const isUnsure = answer.status === 502 || answer.status === 504;
    const mayBeDone = isUnsure ? mayBeDoneBy(init.method) : '';
    const { code, message } = await refusalOf(answer, options);
    throw new AppError(code, `${message}${mayBeDone}`, {
      ...(mayPass(answer.status) && { cause: new Error(`status ${answer.status}`) }),
    });
  };
  const whyNoAnswer = (cause: unknown, method: string | undefined): string => {
    const mayBeDone = mayBeDoneBy(method);
    if (stopping.aborted) return `stopped before the API had answered${mayBeDone}`;
    if (cause instanceof Error && cause.name === 'TimeoutError')
      return `the API at ${url} has not answered within ${TIMEOUT_MS / 1_000} s${mayBeDone}`;
    const reason = networkReasonOf(cause);
    if (isCut(cause))
      return `the API at ${url} broke off before it had answered (${reason})${mayBeDone}`;
    return `the API at ${url} cannot be reached (${reason}); is it running, and is --api-url (SLUICE_API_URL) right?`;
  };
  const whyNoBody = (cause: unknown, method: string): string => {
    if (cause instanceof SyntaxError)
      return `the server at ${url} is not the API; is --api-url (SLUICE_API_URL) right?`;
    if (stopping.aborted) return whyNoAnswer(cause, method);
    const what = `the API at ${url} broke off in the middle of its answer (${reasonOf(cause)})`;
    return method === 'GET'
      ? `${what}; check that it runs, then try again`
      : `${what}${mayBeDoneBy(method)}`;
  };
  const requestBy = async <Body>(
    read: (answer: Response) => Promise<Body>,
    method: Method,
    path: string,
    body: JsonObject | undefined,
  ): Promise<Body> => {
    const stopShowing = showWait(options.onWait ?? (() => undefined));
    const answer = await send(path, {
      method,
      signal: AbortSignal.any([stopping, AbortSignal.timeout(TIMEOUT_MS)]),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).finally(stopShowing);
    try {
      return await read(answer);
    } catch (cause) {
      throw new AppError(endingOf(stopping), whyNoBody(cause, method), { cause });
    }
  };
  return {
    request: (method, path, body) => requestBy(readBody, method, path, body),
    requestAny: (method, path, body) => requestBy(readAnyBody, method, path, body),
    async upload(path, contentType, body) {
      const answer = await send(path, {
        method: 'POST',
        signal: stopping,
        headers: { 'Content-Type': contentType },
        body: ReadableStream.from(body),
        // Node's `fetch` asks for it if a body is a stream.
        duplex: 'half',
      });
      try {
        return await readBody(answer);
      } catch (cause) {
        throw new AppError(endingOf(stopping), whyNoBody(cause, 'POST'), { cause });
      }
    },
    open: (path, signal) => send(path, { method: 'GET', signal }),
  };
}

async function readBody(answer: Response): Promise<JsonObject> {
  const text = await answer.text();
  return text === '' ? {} : (JSON.parse(text) as JsonObject);
}

async function readAnyBody(answer: Response): Promise<JsonObject | string> {
  const type = answer.headers.get('content-type') ?? '';
  return type === '' || /^application\/(?:[\w.-]+\+)?json\b/.test(type)
    ? readBody(answer)
    : answer.text();
}

/** Of a call without an answer: a user who stopped it knows the reason. */
const endingOf = (stopping: AbortSignal): ErrorCode =>
  stopping.aborted ? 'COMMAND_FAILED' : 'COMMAND_NOT_REACHED';

/** @returns a function that ends it. */
function showWait(onWait: (waitedMs: number | undefined) => void): () => void {
  const startedAtMs = performance.now();
  const timer = setInterval(() => {
    const waitedMs = performance.now() - startedAtMs;
    if (waitedMs >= SILENT_MS) onWait(waitedMs);
  }, WAIT_SHOWN_INTERVAL_MS);
  return () => {
    clearInterval(timer);
    if (performance.now() - startedAtMs >= SILENT_MS) onWait(undefined);
  };
}

const mayBeDoneBy = (method: string | undefined): string =>
  method === 'GET' ? '' : '; check whether it was done before you repeat it';

/** `fetch` only reports that it failed; the fault is its cause. OpenSSL ends its messages with a line break. */
const networkReasonOf = (error: unknown): string =>
  reasonOf(error instanceof Error && error.cause !== undefined ? error.cause : error).trim();

/** True if there was a connection: the request may have arrived. */
const isCut = (error: unknown): boolean => {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  return ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'].includes(String(cause?.code));
};

/** Of an API that starts, or whose Postgres or Redis is away, of the proxy in front of it meanwhile, and of a limit of calls. */
const mayPass = (status: number): boolean => status >= 500 || status === 429;

interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
}

async function refusalOf(
  answer: Response,
  { url, keyAdvice, accountAdvice }: ApiClientOptions,
): Promise<Refusal> {
  const notReached = (message: string): Refusal => ({ code: 'COMMAND_NOT_REACHED', message });
  if (answer.status === 401)
    return {
      code: 'COMMAND_NOT_ALLOWED',
      message: `the API does not know this key; ${keyAdvice}`,
    };
  const code = answer.status === 403 ? 'COMMAND_NOT_ALLOWED' : 'COMMAND_FAILED';
  const problem = (await answer.json().catch(() => undefined)) as Problem | undefined;
  if (problem?.message === undefined)
    return notReached(
      `the server at ${url} answers ${answer.status}, but not as the API does; is --api-url (SLUICE_API_URL) right, and does the API run behind it?`,
    );
  // A missing object has another message, which names it; so it is another process of ours, or another version.
  if (answer.status === 404 && /^(?:there is )?no such path$/.test(problem.message))
    return notReached(
      `the server at ${url} has no such path; check that --api-url (SLUICE_API_URL) is the URL of the API, and that the API has this version`,
    );
  if (accountAdvice !== undefined && problem.message === NO_ACCOUNT)
    return { code: 'COMMAND_NOT_ALLOWED', message: `${problem.message}; ${accountAdvice}` };
  const details = (problem.errors ?? [])
    .filter(({ field, message }) => field != null && message !== problem.message)
    .map(({ message }) => `\n  ${message}`);
  return { code, message: `${problem.message}${details.join('')}` };
}

/** The API's message if the token is of another account than the path. */
const NO_ACCOUNT = 'account not found';

/** The parts of the one body of every failure that are read. */
interface Problem {
  readonly message?: string;
  readonly errors?: readonly { readonly field?: string | null; readonly message: string }[];
}
