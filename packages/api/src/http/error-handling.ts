/**
 * Error → problem → the wire: only this file knows the errors of Fastify, the HTTP parser and Postgres. An unknown
 * error is a 500 without details in its answer, and with all of them in the log.
 */
import type { Socket } from 'node:net';
import { isDatabaseAway } from '@sluice/database/connection/database-away';
import { isCancelled, isSacrificed } from '@sluice/database/connection/statement-failure';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Problem, PROBLEMS, renderProblem } from './problem.ts';
import { RequestRefused } from './request-validation.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Code of the problem that the call is answered with; null if there is no problem. */
    problemCode: Problem['code'] | null;
  }
}

const RETRY_AFTER_SECONDS = 1;
/** A call that took too long will do so again, unless it waited for another. */
const RETRY_AFTER_OVERLONG_SECONDS = 30;

/** Answers with a problem. */
export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  problem: Problem,
): FastifyReply {
  const { status } = PROBLEMS[problem.code];
  request.problemCode = problem.code;
  const retryAfter =
    problem.retryAfterSeconds ?? (status === 503 ? RETRY_AFTER_SECONDS : undefined);
  if (retryAfter !== undefined) void reply.header('retry-after', retryAfter);
  if (status === 401) void reply.header('www-authenticate', 'Bearer');
  return reply
    .code(status)
    .header('content-type', 'application/problem+json; charset=utf-8')
    .send(renderProblem(problem, request.id));
}

/** Fastify's error handler. */
export function handleError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const problem = toProblem(error, request);
  if (problem.code === 'internal' || problem.code === 'unavailable') {
    request.log.error(
      { error, route: request.routeOptions.url },
      'a request failed; its client got 500 or 503. For 503 restore the service that error names; after a statement timeout or a deadlock the client tries again. Report a 500',
    );
  }
  return sendProblem(request, reply, problem);
}

function toProblem(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof RequestRefused) return error.problem;
  switch (codeOf(error)) {
    case 'FST_ERR_CTP_INVALID_JSON_BODY':
      return { code: 'invalid_json', message: 'the body is not valid JSON' };
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return {
        code: 'invalid_request',
        message: 'the body has another length than Content-Length; send its length in bytes',
      };
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return {
        code: 'body_too_large',
        message: `the body must be at most ${request.routeOptions.bodyLimit} bytes`,
      };
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return {
        code: 'unsupported_media_type',
        message: 'the body must be sent with Content-Type: application/json',
      };
    case 'CALL_OVERTAKEN':
      return {
        code: 'idempotency_key_in_use',
        message:
          'the same call was repeated while this one waited; this one had no effect, try again',
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      };
    case 'FST_ERR_BAD_URL':
      return { code: 'invalid_request', message: 'the path is not valid percent-encoded UTF-8' };
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return {
        code: 'not_found',
        message: 'a part of the path is longer than any name; check the path',
      };
  }
  // Set by Fastify if reading the body failed: the client went away. Postgres' ECONNRESET has no status.
  if (error instanceof Error && 'statusCode' in error && error.statusCode === 400) {
    return {
      code: 'invalid_request',
      message: 'the body ended before its length was reached; send it again',
    };
  }
  if (isCancelled(error)) {
    return {
      code: 'unavailable',
      message:
        'the answer took longer than a call may take; ask for less at a time, for example fewer days, or try again',
      retryAfterSeconds: RETRY_AFTER_OVERLONG_SECONDS,
    };
  }
  if (isPassing(error))
    return { code: 'unavailable', message: 'the service cannot answer; try again' };
  return {
    code: 'internal',
    message: 'the service failed; quote the request id to the operator',
  };
}

/** True if the same call may go through later: Postgres is away, or gave up the statement or the transaction. */
export const isPassing = (error: unknown): boolean =>
  isDatabaseAway(error) || isSacrificed(error) || isCancelled(error);

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}

/** Answers requests that Node's HTTP parser refused, so that even their answers have the one body. */
export function handleClientError(newId: () => string) {
  return (error: Error & { code?: string }, socket: Socket): void => {
    // On a reset connection an answer cannot arrive; one that has been answered in part must not get a second head.
    if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) {
      socket.destroy();
      return;
    }
    const problem = toClientProblem(error.code);
    const { status } = PROBLEMS[problem.code];
    const requestId = newId();
    const body = JSON.stringify(renderProblem(problem, requestId));
    socket.end(
      [
        `HTTP/1.1 ${status} ${problem.code.replaceAll('_', ' ')}`,
        'content-type: application/problem+json; charset=utf-8',
        `content-length: ${Buffer.byteLength(body)}`,
        'x-content-type-options: nosniff',
        'cache-control: no-store',
        `x-request-id: ${requestId}`,
        'connection: close',
        '',
        body,
      ].join('\r\n'),
    );
  };
}

function toClientProblem(code: string | undefined): Problem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return {
        code: 'headers_too_large',
        message: 'the headers are too large; send fewer or shorter ones',
      };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return {
        code: 'request_timeout',
        message: 'the request did not arrive in time; send it again',
      };
    default:
      return {
        code: 'invalid_request',
        message: 'the request is not valid HTTP; correct its first line and headers',
      };
  }
}
