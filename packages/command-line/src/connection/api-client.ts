/**
 * The API as the commands use it: the typed client, whose failures are errors with the next action.
 *
 * Each command calls it by {@link resultOf}, so the description of the API checks its path, parameters and body.
 */
import { type ApiClient, createApiClient, type Problem } from '@sluice/client';
import { AppError, type ErrorCode, reasonOf } from '@sluice/domain/values/errors';

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

/**
 * Calls reject with AppError COMMAND_FAILED with the API's message, COMMAND_NOT_ALLOWED if the key may not,
 * COMMAND_NOT_REACHED if the API cannot be reached; with a cause if that may pass by itself.
 */
export function connectApi(options: ApiClientOptions): ApiClient {
  const { url, key } = options;
  const api = createApiClient({
    url,
    token: key !== undefined && KEY.test(key) ? key : undefined,
    fetch: (request) => send(request, options),
  });
  api.use({
    onResponse: async ({ request, response, options: { parseAs } }) => {
      if (!response.ok) throw await failureOf(request, response, options);
      return parseAs === 'stream'
        ? response
        : readWhole(request, response, options, parseAs === 'json' || isJson(response));
    },
  });
  return api;
}

/** The head of an answer. */
async function send(request: Request, options: ApiClientOptions): Promise<Response> {
  const { url, key, keyAdvice, signal: stopping } = options;
  if (key === undefined)
    throw new AppError('COMMAND_NOT_ALLOWED', `the profile has no such key; ${keyAdvice}`);
  if (!KEY.test(key))
    throw new AppError(
      'COMMAND_NOT_ALLOWED',
      `the key does not have the form of a key; ${keyAdvice}`,
    );
  const signals = [request.signal, stopping];
  const isLimited = !takesLong(request);
  if (isLimited) signals.push(AbortSignal.timeout(TIMEOUT_MS));
  const stopShowing = showWait(isLimited ? options.onWait : undefined);
  try {
    return await fetch(request, { signal: AbortSignal.any(signals) });
  } catch (cause) {
    throw new AppError(endingOf(stopping), whyNoAnswer(cause, request, url, stopping), { cause });
  } finally {
    stopShowing();
  }
}

/** A file, and the live tail: they end by Ctrl-C only. */
const takesLong = ({ headers }: Request): boolean =>
  headers.get('accept') === EVENT_STREAM ||
  headers.get('content-type')?.startsWith('multipart/') === true;

/** `Accept` of the live tail. */
export const EVENT_STREAM = 'text/event-stream';

async function failureOf(
  { method }: Request,
  answer: Response,
  options: ApiClientOptions,
): Promise<AppError> {
  // A gateway gives up an API that may still be at it.
  const isUnsure = answer.status === 502 || answer.status === 504;
  const mayBeDone = isUnsure ? mayBeDoneBy(method) : '';
  const { code, message } = await refusalOf(answer, options);
  return new AppError(code, `${message}${mayBeDone}`, {
    ...(mayPass(answer.status) && { cause: new Error(`status ${answer.status}`) }),
  });
}

/** True also for an answer without a type. */
export function isJson({ headers }: Response): boolean {
  const type = headers.get('content-type') ?? '';
  return type === '' || /^application\/(?:[\w.-]+\+)?json\b/.test(type);
}

/** The same answer with its body, so that the client cannot fail to read it. */
async function readWhole(
  request: Request,
  answer: Response,
  { url, signal: stopping }: ApiClientOptions,
  mustBeJson: boolean,
): Promise<Response> {
  try {
    const text = await answer.text();
    if (mustBeJson && text !== '') JSON.parse(text);
    const { status, headers } = answer;
    return new Response(text === '' ? null : text, { status, headers });
  } catch (cause) {
    throw new AppError(endingOf(stopping), whyNoBody(cause, request, url, stopping), { cause });
  }
}

function whyNoAnswer(
  cause: unknown,
  { method }: Request,
  url: string,
  stopping: AbortSignal,
): string {
  const mayBeDone = mayBeDoneBy(method);
  if (stopping.aborted) return `stopped before the API had answered${mayBeDone}`;
  if (cause instanceof Error && cause.name === 'TimeoutError')
    return `the API at ${url} has not answered within ${TIMEOUT_MS / 1_000} s${mayBeDone}`;
  const reason = networkReasonOf(cause);
  if (isCut(cause))
    return `the API at ${url} broke off before it had answered (${reason})${mayBeDone}`;
  return `the API at ${url} cannot be reached (${reason}); is it running, and is --api-url (SLUICE_API_URL) right?`;
}

function whyNoBody(cause: unknown, request: Request, url: string, stopping: AbortSignal): string {
  if (cause instanceof SyntaxError)
    return `the server at ${url} is not the API; is --api-url (SLUICE_API_URL) right?`;
  if (stopping.aborted) return whyNoAnswer(cause, request, url, stopping);
  const what = `the API at ${url} broke off in the middle of its answer (${reasonOf(cause)})`;
  return request.method === 'GET'
    ? `${what}; check that it runs, then try again`
    : `${what}${mayBeDoneBy(request.method)}`;
}

/** Of a call without an answer: a user who stopped it knows the reason. */
const endingOf = (stopping: AbortSignal): ErrorCode =>
  stopping.aborted ? 'COMMAND_FAILED' : 'COMMAND_NOT_REACHED';

/** @returns a function that ends it. */
function showWait(onWait: ApiClientOptions['onWait']): () => void {
  if (onWait === undefined) return () => undefined;
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

const mayBeDoneBy = (method: string): string =>
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
  const problem = (await answer.json().catch(() => undefined)) as Partial<Problem> | undefined;
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
