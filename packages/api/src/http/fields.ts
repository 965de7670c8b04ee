/** Zod pieces that several route families share: strings, ids and times of this API. */
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { trimmed } from '@sluice/domain/value-rules/verdict';
import { isStorableText } from '@sluice/domain/values/storable-text';
import { z } from 'zod';
import { PROBLEMS } from './problem.ts';

/**
 * Text that Postgres can hold as it is: it refuses NUL, and its driver would silently replace an
 * unpaired surrogate.
 */
export const text = (lengthMax: number) =>
  z
    .string()
    .max(lengthMax)
    .refine(isStorableText, { error: 'must not hold NUL or unpaired surrogate characters' });

/** For the description of a text that is trimmed and must then hold something. */
export const NOT_BLANK = { pattern: String.raw`\S` };

/** The name of a person, an object or an event, without blanks at its ends as at every other door. */
export const identifierText = (lengthMax: number) => text(lengthMax).overwrite(trimmed);

/** An answer as server-sent events. The schema is of one event. OpenAPI 3.1 has no word for a stream; 3.2 has `itemSchema`. */
export const serverSentEvents = {
  'text/event-stream': {
    schema: z.object({ event: z.string().optional(), id: z.string(), data: z.string() }),
  },
};

/** A configuration with all 72 events and the longest URL has under 6 KB. Routes that need more set their own limit. */
export const BODY_SIZE_BYTES_MAX = 64 * 1024;

/** An id in a path: a positive int32 in plain digits. */
export const idInPath = z
  .string()
  .regex(/^[1-9]\d{0,9}$/)
  .transform(Number)
  .refine((id) => id <= INTEGER_MAX)
  .meta({ type: 'integer', format: 'int32', minimum: 1, maximum: INTEGER_MAX });

/** A place in the log of a webhook's deliveries: beyond int32 within a month of a busy one. */
export const sequenceInPath = z
  .string()
  .regex(/^[1-9]\d{0,15}$/)
  .transform(Number)
  .refine(Number.isSafeInteger)
  .meta({ type: 'integer', format: 'int64', minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

/** A time in an answer: RFC 3339, UTC, milliseconds. */
export const instant = z.string().meta({ format: 'date-time' });

/** The last second of the year 9999, so that every time has a date. */
export const UNIX_SECONDS_MAX = 253_402_300_799;

/** Unix seconds in a query. */
export const unixSecondsInQuery = z
  .string()
  .regex(/^\d{1,12}$/, 'must be Unix seconds, an integer')
  .transform(Number)
  .refine((seconds) => seconds <= UNIX_SECONDS_MAX, {
    error: 'must be Unix seconds, not milliseconds',
  })
  .meta({ type: 'integer', minimum: 0, maximum: UNIX_SECONDS_MAX });

/** The body of every failure (`problem.ts`). */
const problemBody = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(Object.keys(PROBLEMS) as [keyof typeof PROBLEMS]),
    message: z.string(),
    errors: z
      .array(
        z.object({
          detail: z.string(),
          status: z.string(),
          message: z.string(),
          field: z.string().nullable().meta({ description: 'Dots between levels: `events.3`.' }),
          reason: z.string(),
          source: z
            .object({ pointer: z.string().optional(), parameter: z.string().optional() })
            .optional(),
        }),
      )
      .min(1),
    meta: z.looseObject({
      error: z.string(),
      errors: z.array(z.string()),
      request_id: z.string(),
    }),
  })
  .meta({ id: 'Problem', description: 'The error of a call, readable by every known client.' });

export const problemResponse = (description: string) => ({
  description,
  content: { 'application/problem+json': { schema: problemBody } },
});

/** For account routes: a valid token may not be allowed to make the call, or may be used too often. */
export const forbidden = {
  403: problemResponse(PROBLEMS.forbidden.meaning),
  429: problemResponse(PROBLEMS.rate_limited.meaning),
};

/** For routes whose values may be wrong although their type is right. */
export const unprocessable = { 422: problemResponse(PROBLEMS.validation_failed.meaning) };

/** For routes with a rate. */
export const tooMany = { 429: problemResponse(PROBLEMS.rate_limited.meaning) };

/** The failures that every authenticated route can end in. */
export const commonFailures = {
  401: problemResponse(PROBLEMS.unauthorized.meaning),
  500: problemResponse(PROBLEMS.internal.meaning),
  503: problemResponse(PROBLEMS.unavailable.meaning),
};

/** For routes that take values. */
export const badRequest = { 400: problemResponse(PROBLEMS.invalid_request.meaning) };

/** For routes whose path names something. */
export const missing = { 404: problemResponse(PROBLEMS.not_found.meaning) };

/** For account routes that take no values. */
export const accountReadFailures = { ...forbidden, ...missing, ...commonFailures };

/** For account routes that take values and name something: the usual failures. */
export const accountFailures = { ...badRequest, ...unprocessable, ...accountReadFailures };

/** For routes that start a purchase. */
export const inFlight = { 409: problemResponse(PROBLEMS.purchase_in_flight.meaning) };

/** For routes that cannot answer without the payment provider. */
export const providerFailed = { 502: problemResponse(PROBLEMS.vendor_refused.meaning) };

/** For routes that charge before they answer. */
export const paymentDeclined = { 402: problemResponse(PROBLEMS.payment_declined.meaning) };

/** For routes whose object must be in some state. */
export const conflicting = { 409: problemResponse(PROBLEMS.conflict.meaning) };

/** For routes that take an `Idempotency-Key`, if they name no other reason for the status. */
export const keyFailures = {
  ...badRequest,
  409: problemResponse(PROBLEMS.idempotency_key_in_use.meaning),
  422: problemResponse(PROBLEMS.idempotency_key_reused.meaning),
};

/** For routes that make things whose number is limited. */
export const atLimit = { 409: problemResponse(PROBLEMS.limit_reached.meaning) };

/** For routes that take a body. */
export const badBody = {
  413: problemResponse(PROBLEMS.body_too_large.meaning),
  415: problemResponse(PROBLEMS.unsupported_media_type.meaning),
};
