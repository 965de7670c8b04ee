/**
 * The one error body that every HTTP edge sends.
 *
 * It has RFC 9457 members with the older shapes beside them, so that each real client finds the text in its place
 * (`ingestion-conventions.md` §3.3, §5.4). They are `code` and `message`, `errors[]`, `meta.error` and `meta.errors`.
 */

export interface ProblemDetail {
  /** Path of the field, or null if the problem is about no single field. */
  readonly field: string | null;
  /** A stable word: `required`, `invalid`, `too_long`, … */
  readonly reason: string;
  readonly message: string;
  /** Place of the value: a JSON pointer (RFC 6901) into the body, or the name of a path or query parameter. */
  readonly source?: { readonly pointer: string } | { readonly parameter: string };
  /** 0-based item of a batch call. */
  readonly batchIndex?: number;
}

export interface Problem {
  readonly status: number;
  /** Stable, snake_case. */
  readonly code: string;
  /** One sentence that may be shown to the caller. */
  readonly message: string;
  readonly details?: readonly ProblemDetail[];
  readonly requestId?: string;
}

/** The body as a JSON value; `content-type: application/problem+json` if the client is not an old one. */
export function problemBody(problem: Problem): Record<string, unknown> {
  const { status, code, message, details = [], requestId } = problem;
  const texts = details.length > 0 ? details.map((detail) => detail.message) : [message];
  return {
    type: `urn:sluice:error:${code}`,
    title: code.replaceAll('_', ' '),
    status,
    detail: message,
    code,
    message,
    errors: (details.length > 0 ? details : [{ field: null, reason: code, message }]).map(
      (detail) => ({
        ...('batchIndex' in detail && detail.batchIndex !== undefined
          ? { batch_index: detail.batchIndex }
          : {}),
        field: detail.field,
        reason: detail.reason,
        message: detail.message,
        detail: detail.message,
        status: String(status),
        ...sourceOf(status, 'source' in detail ? detail.source : undefined),
      }),
    ),
    meta: {
      error: message,
      errors: texts,
      ...(requestId === undefined ? {} : { request_id: requestId }),
    },
  };
}

/** Clients of the older account API read a pointer in every 422, also if no member of the body is meant. */
function sourceOf(status: number, source: ProblemDetail['source']): object {
  if (status === 422) return { source: { pointer: '', ...source } };
  return source === undefined ? {} : { source };
}
