/**
 * Rate of one key or token: every answer has the remaining calls, one call too many is 429. `call-limit.ts` counts the
 * calls.
 */
import type { FastifyReply } from 'fastify';
import { CallLimit, type CallLimitOptions } from './call-limit.ts';
import type { Problem } from '../http/problem.ts';

/** Counts a call and writes the remaining calls into the headers; a problem if it is one too many. */
export type CallRate = (
  reply: FastifyReply,
  subject: number | string,
) => Promise<Problem | undefined>;

/**
 * @param options - `countMax` 0: no limit, and calls are not counted.
 * @param message - for a caller who calls too often.
 */
export function createCallRate(options: CallLimitOptions, message: string): CallRate {
  if (options.countMax === 0) return async () => undefined;
  const limit = new CallLimit(options);
  return async (reply, subject) => {
    const { remaining, resetSeconds, isExceeded } = await limit.take(subject);
    void reply.headers({
      'ratelimit-limit': options.countMax,
      'ratelimit-remaining': remaining,
      'ratelimit-reset': resetSeconds,
    });
    return isExceeded
      ? { code: 'rate_limited', message, retryAfterSeconds: resetSeconds }
      : undefined;
  };
}
