/**
 * How often one key or token may call: every answer tells what is left, one call too many is 429. How calls are
 * counted: `call-limit.ts`.
 */
import type { FastifyReply } from 'fastify';
import { CallLimit, type CallLimitOptions } from './call-limit.ts';
import type { Problem } from '../http/problem.ts';

/** Counts a call and says in the headers what is left; a problem where it is one too many. */
export type CallRate = (
  reply: FastifyReply,
  subject: number | string,
) => Promise<Problem | undefined>;

/**
 * @param options - `countMax` 0: as many as they like, and nothing is counted.
 * @param message - for whoever calls too often.
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
