/** The client that `client.d.ts` describes. Plain JavaScript: what is installed as a package cannot be stripped of types. */
import createClient from 'openapi-fetch';

const WRITES = new Set(['POST', 'PUT']);
/** Calls by POST that change nothing: with a key their answers would be kept for seven days. */
const READS = new Set(['/v1/objects', '/v1/event_types/{name}/check']);

/**
 * @public
 * @type {typeof import('../client.js').createApiClient}
 */
export function createApiClient({ url, token, fetch }) {
  const client = createClient({
    baseUrl: withoutSlash(url),
    ...(fetch && { fetch }),
    ...(token !== undefined && { headers: { Authorization: `Bearer ${token}` } }),
  });
  client.use({
    async onRequest({ request, schemaPath }) {
      const isWrite = WRITES.has(request.method) && !READS.has(schemaPath);
      if (isWrite && !request.headers.has('Idempotency-Key') && !(await isDryRun(request)))
        request.headers.set('Idempotency-Key', newKey());
      return request;
    },
  });
  return client;
}

/**
 * @public
 * @type {typeof import('../client.js').createIntakeClient}
 */
export function createIntakeClient(options) {
  const { url, fetch } = options;
  const credentials =
    'writeKey' in options ? `${options.writeKey}:` : `${options.siteId}:${options.apiKey}`;
  return createClient({
    baseUrl: withoutSlash(url),
    ...(fetch && { fetch }),
    headers: {
      Authorization: `Basic ${base64(credentials)}`,
      ...(options.isStrict && { 'X-Strict-Mode': '1' }),
    },
  });
}

/** @public */
export class CallFailed extends Error {
  /**
   * @param {Response} response
   * @param {import('../client.js').Problem | undefined} problem
   */
  constructor(response, problem) {
    super(problem?.message ?? `${response.url} was answered ${response.status}`);
    this.name = 'CallFailed';
    this.status = response.status;
    this.code = problem?.code;
    this.requestId = problem?.meta?.request_id ?? response.headers.get('x-request-id') ?? undefined;
    this.problem = problem;
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    this.retryAfterSeconds = Number.isFinite(seconds) ? seconds : undefined;
  }
}

/**
 * @public
 * @type {typeof import('../client.js').resultOf}
 */
export async function resultOf(call) {
  const { data, error, response } = await call;
  if (response.ok) return /** @type {NonNullable<typeof data>} */ (data);
  const isProblem = typeof error === 'object' && error !== null && 'message' in error;
  throw new CallFailed(
    response,
    isProblem ? /** @type {import('../client.js').Problem} */ (error) : undefined,
  );
}

/**
 * A call that only counts: with a key its answer would be kept for seven days.
 *
 * @param {Request} request
 */
async function isDryRun(request) {
  if (request.headers.get('Content-Type') !== 'application/json') return false;
  const given = request.clone().json();
  const body = /** @type {{ readonly dry_run?: unknown } | null | undefined} */ (
    await given.catch(() => undefined)
  );
  return body?.dry_run === true;
}

/**
 * Unlike every other key; it is no secret. Node 18 has no global `crypto`, and browsers have no `randomUUID` on pages
 * without HTTPS.
 */
const newKey = () =>
  globalThis.crypto?.randomUUID?.() ??
  Array.from({ length: 4 }, () => Math.random().toString(36).slice(2)).join('-');

/**
 * Of UTF-8: `btoa` alone refuses a wrong key with other letters, which intake answers with 401.
 *
 * @param {string} text
 */
const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

/** @param {string} url */
const withoutSlash = (url) => url.replace(/\/+$/, '');
