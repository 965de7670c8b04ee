/**
 * Failures of this API: one table from code to status and meaning, shown at `/docs`.
 *
 * Every failure leaves as the one body of `domain/src/values/problem.ts`, which clients of both older shapes read too
 * (ingestion-conventions.md §5.4). If several values are refused, `meta.error` holds all of them in one line, because a
 * client that reads it looks no further.
 *
 * Pure; `error-handling.ts` puts it on the wire.
 */
import { problemBody, type ProblemDetail } from '@sluice/domain/values/problem';

/** code → status, meaning and next action. */
export const PROBLEMS = {
  invalid_request: {
    status: 400,
    meaning:
      'A value in the body, the query or the path is missing or malformed. `errors` names each one: correct them, then send the request again.',
  },
  invalid_signature: {
    status: 400,
    meaning:
      'The signature of the call is missing, wrong or too old. The call was not stored. Sign the exact bytes of the body with the secret of the endpoint, and check the clock.',
  },
  invalid_json: {
    status: 400,
    meaning:
      'The body is not JSON. Send one JSON value, UTF-8 encoded, with `Content-Type: application/json`.',
  },
  unauthorized: {
    status: 401,
    meaning:
      'The credentials are missing or not valid. Send `Authorization: Bearer <key>` with a key of this API that is not revoked.',
  },
  payment_declined: {
    status: 402,
    meaning: 'The card was declined; the message may be shown to the customer. Use another card.',
  },
  forbidden: {
    status: 403,
    meaning:
      'The token is valid, but its role or its scopes do not allow the call. The message names the role or scope that is needed.',
  },
  read_only: {
    status: 403,
    meaning: 'The token may only read. Use a token that is not read-only.',
  },
  plan_not_eligible: {
    status: 403,
    meaning: "The account's plan does not include this. Change the plan first.",
  },
  environment_not_owned: {
    status: 403,
    meaning: 'The workspace does not belong to the account. Use the id of one of its workspaces.',
  },
  ip_not_allowed: {
    status: 403,
    meaning:
      'The token may not be used from this address. Call from an address of its `ip_allowlist`, or change the list.',
  },
  not_found: {
    status: 404,
    meaning:
      'The path is wrong, or its object does not exist or belongs to another account. Check the path and its ids.',
  },
  unknown_action: {
    status: 404,
    meaning: 'The path ends in an unknown action. The message lists the known ones.',
  },
  method_not_allowed: {
    status: 405,
    meaning: 'The path does not have this method. The `Allow` header lists its methods.',
  },
  request_timeout: {
    status: 408,
    meaning: 'The request did not arrive in time. Send it again.',
  },
  conflict: {
    status: 409,
    meaning:
      'The call does not fit the present state; the message gives the reason. Read the state, then decide again.',
  },
  limit_reached: {
    status: 409,
    meaning:
      'The limit of these objects is reached; `meta.limit` has the number. Delete or revoke one first.',
  },
  insufficient_credits: {
    status: 409,
    meaning:
      'The pools hold fewer credits than the call takes; `meta.available` has the number. The call had no effect: buy more, or take less.',
  },
  purchase_in_flight: {
    status: 409,
    meaning:
      'Another purchase of the account is still running; `meta.run_id` names it. Try again when it has ended.',
  },
  payment_method_required: {
    status: 409,
    meaning:
      'There is no card on file that could be charged, so no purchase was started. Put one on file with `POST /v1/accounts/{account_id}/billing/payment_method/default`, then buy again.',
  },
  checkout_pending: {
    status: 409,
    meaning:
      'The checkout goes on and may still bill. Poll `checkout_status` with `meta.run_id` after `Retry-After` seconds; do not start it again.',
  },
  checkout_conflict: {
    status: 409,
    meaning:
      'A checkout of the account that ran at the same time bought something else. Look at the subscription before you try again.',
  },
  amount_changed: {
    status: 409,
    meaning:
      'The price differs from the expected amount, so there was no charge. Show the new amount, then buy again.',
  },
  coupon_not_valid: {
    status: 409,
    meaning:
      'The coupon is used up or has expired, so there was no charge. Buy without it, or with another one.',
  },
  payment_past_due: {
    status: 409,
    meaning:
      "The subscription's last invoice is not paid, so the subscription cannot be changed. There was no charge. Pay the open invoice first: put another card on file. The payment provider charges it at its next attempt.",
  },
  payment_pending: {
    status: 409,
    meaning:
      "The payment of the subscription's last invoice is in progress, so the subscription cannot be changed. There was no charge. A bank takes days. Try again when it is paid.",
  },
  plan_transition_not_allowed: {
    status: 409,
    meaning: "The account's plan cannot change to this plan. Choose another plan.",
  },
  cursor_expired: {
    status: 410,
    meaning: 'The events after the cursor are deleted. Continue with the cursor in `meta.oldest`.',
  },
  body_too_large: {
    status: 413,
    meaning: 'The body is larger than the limit in the message, in bytes. Send less at a time.',
  },
  unsupported_media_type: {
    status: 415,
    meaning:
      'The body has another media type or is compressed. Send `Content-Type: application/json` without compression.',
  },
  idempotency_key_in_use: {
    status: 409,
    meaning:
      'A call with this `Idempotency-Key` is in progress. Try again after `Retry-After` seconds.',
  },
  idempotency_key_reused: {
    status: 422,
    meaning: 'This `Idempotency-Key` was used with another body or query. Use a new key.',
  },
  email_taken: {
    status: 409,
    meaning: 'The address already has an account. Sign in instead.',
  },
  invalid_code: {
    status: 422,
    meaning: 'The code is wrong, expired, used, or was tried too often. Start the signup again.',
  },
  cursor_mismatch: {
    status: 422,
    meaning:
      'The cursor belongs to other filters. Send the filters of the page before, or begin without a cursor.',
  },
  validation_failed: {
    status: 422,
    meaning:
      'A value has the right type but is not allowed. `errors` names each one: correct them, then send the request again.',
  },
  rail_not_supported: {
    status: 422,
    meaning: 'The account has another payment method type. Use the route for that type.',
  },
  too_many_attempts: {
    status: 429,
    meaning: 'Too many codes were tried. Try again after `Retry-After` seconds.',
  },
  rate_limited: {
    status: 429,
    meaning: 'Too many calls. Try again after `Retry-After` seconds.',
  },
  headers_too_large: {
    status: 431,
    meaning: 'The headers are too large. Send fewer or shorter ones.',
  },
  internal: {
    status: 500,
    meaning:
      'The service failed; the request may be correct. Quote `meta.request_id` to the operator.',
  },
  vendor_refused: {
    status: 502,
    meaning:
      'The payment provider refused the request. There was no charge. Use another payment method, or ask the operator.',
  },
  unavailable: {
    status: 503,
    meaning:
      'A required service is down, capacity is exhausted, or the answer took too long; the message names the cause. Try again after `Retry-After` seconds.',
  },
} as const;

export type ProblemCode = keyof typeof PROBLEMS;

/** A failure before it has a request to belong to. */
export interface Problem {
  readonly code: ProblemCode;
  /** For the person who reads it; never internals. */
  readonly message: string;
  /** One entry a refused value. */
  readonly details?: readonly ProblemDetail[];
  /** Further members of `meta`, beside `request_id`. */
  readonly meta?: Readonly<Record<string, unknown>>;
  /** Further members of the body, if another standard asks for them. */
  readonly extensions?: Readonly<Record<string, unknown>>;
  /** In seconds. 503 has one anyway. */
  readonly retryAfterSeconds?: number;
}

/** The refusal of one or more values as one problem. */
export function invalidRequest(details: readonly ProblemDetail[]): Problem {
  return {
    code: 'invalid_request',
    message: details.map((detail) => detail.message).join('; '),
    details,
  };
}

/** The refusal of values that have the right type: 422. */
export function validationFailed(details: readonly ProblemDetail[]): Problem {
  return { ...invalidRequest(details), code: 'validation_failed' };
}

/** The object in the path does not exist for the caller. */
export function notFound(what: string): Problem {
  return { code: 'not_found', message: `${what} not found` };
}

/** @param whose - whose limit it is, as `the workspace`. */
export function limitReached(whose: string, what: string, limit: number): Problem {
  return {
    code: 'limit_reached',
    message: `${whose} has ${limit} ${what}, which is the limit; remove one first`,
    meta: { limit },
  };
}

/** The wire body. */
export function renderProblem(problem: Problem, requestId: string): Record<string, unknown> {
  const { status } = PROBLEMS[problem.code];
  const body = problemBody({ ...problem, status, requestId });
  return {
    ...body,
    ...problem.extensions,
    meta: { ...(body['meta'] as Record<string, unknown>), ...problem.meta },
  };
}
