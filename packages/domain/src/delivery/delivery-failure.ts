/**
 * Endings of an attempt, and the ones with an hour's wait.
 *
 * A client's words for the listed failures (`ingestion-webhooks.md` §7) are "EOF", "misbehaving server", "connection
 * refused", "connection reset by peer". The keys below name the same failures. Every other failure goes straight to
 * exponential backoff.
 *
 * "A misbehaving server" is listed as a receiver's failure, so it means one that does not speak HTTP. Go's "server
 * misbehaving" is a name server that failed (SERVFAIL). It is left out on purpose. The system's resolver has one code
 * (EAI_AGAIN) for a name server that fails, is silent or is out of reach, and the name server is usually ours. The hour
 * of rest is for receivers; a failure of our resolver would cost every endpoint one. Backoff asks again in seconds.
 *
 * Step 12 of the walk. Before: `worker/src/http/classify-failure.ts` names the failure. After: `delivery-schedule.ts`.
 */

/** Failure class → its meaning, for readers of the attempts. */
export const FAILURE_CLASSES = {
  status: 'The endpoint answered, but not with a 2xx status. Redirects are not followed.',
  end_of_file: 'The endpoint closed the connection before its answer was complete.',
  misbehaving_server: 'The answer of the endpoint is not an HTTP/1.1 response.',
  connection_refused: 'The address and port refuse the connection.',
  connection_reset: 'The endpoint reset the connection.',
  tls_verification:
    'The certificate is expired, is for another name, or is not signed by a known authority.',
  tls_handshake: 'No TLS connection (1.2 or newer) could be agreed on.',
  timeout:
    'No complete answer in time, counted from the name look-up to the last byte of the body.',
  name_not_resolved: 'The name of the endpoint has no address.',
  unreachable: 'There is no route to the address.',
  address_refused: 'The endpoint is at an address that this installation does not send to.',
  token_unavailable:
    'The token URL of the webhook (OAuth2) gave no access token, so the delivery was not sent.',
  unusable_endpoint: 'The endpoint is not an http or https URL that can be called.',
  skipped: 'Not an attempt: an operator gave the delivery up.',
  other: 'Another failure; the message has the details.',
} as const;

export type FailureClass = keyof typeof FAILURE_CLASSES;

/** A failed attempt. `status` is set if a response head came, for every class. */
export interface DeliveryFailure {
  readonly failure: FailureClass;
  readonly status: number | null;
}

const LISTED_STATUSES: ReadonlySet<number> = new Set([
  400, 401, 402, 403, 404, 405, 410, 429, 500, 502, 521,
]);

const LISTED_CLASSES: ReadonlySet<FailureClass> = new Set<FailureClass>([
  'end_of_file',
  'misbehaving_server',
  'connection_refused',
  'connection_reset',
  'tls_verification',
]);

/** True for 2xx only. */
export function isSuccessStatus(status: number): boolean {
  return status >= 200 && status <= 299;
}

/** True if `ingestion-webhooks.md` §7 requires a wait of one hour. */
export function isListedFailure(failure: DeliveryFailure): boolean {
  if (failure.failure === 'status')
    return failure.status !== null && LISTED_STATUSES.has(failure.status);
  return LISTED_CLASSES.has(failure.failure);
}
