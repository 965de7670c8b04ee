/**
 * Limit of a workspace's calls a second (step 3 of the walk): a token bucket.
 *
 *   burst = per second × window          the bucket when full
 *   tokens grow by per second, to burst  a call takes one; an empty bucket gives 429 and the time of the next try
 *
 * Off unless the operator sets it for workspaces of others. The bound on waiting bytes (503) protects the process.
 * 1,000 a second gives the rates that clients of such services are used to (3,000 calls in 3 s). 429 in permissive mode
 * too: 200 means "taken, or recorded as wrong", and a call over the limit is neither. Clients that retry at all retry a
 * 429, after `Retry-After`.
 *
 * Counted in this process alone: n processes let n times as much through. Only calls with credentials in force are
 * counted: a stranger cannot use up a workspace's tokens. Before: `authenticate.ts`. After: `calls.ts`.
 */

/** How many seconds of the rate may come at once: 3,000 calls in 3 s, as clients of such services are used to. */
const RATE_LIMIT_WINDOW_SECONDS = 3;

export interface RatePolicy {
  readonly perSecond: number;
  readonly windowSeconds: number;
}

export interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

/** Values for the headers about a bucket after a call. */
export interface RateStanding {
  readonly isTaken: boolean;
  /** Calls in a full bucket. */
  readonly limit: number;
  /** Calls that it would take now. */
  readonly remaining: number;
  /** Until it is full. */
  readonly resetSeconds: number;
  /** Until it takes a call; at least 1, because `Retry-After` has whole seconds. */
  readonly retryAfterSeconds: number;
}

/** A full bucket. */
export const fullBucket = (policy: RatePolicy, nowMs: number): Bucket => ({
  tokens: policy.perSecond * policy.windowSeconds,
  atMs: nowMs,
});

/** Takes one token if there is one. A clock that goes back changes no tokens. */
export function takeToken(
  { perSecond, windowSeconds }: RatePolicy,
  bucket: Bucket,
  nowMs: number,
): { bucket: Bucket; standing: RateStanding } {
  const limit = perSecond * windowSeconds;
  const elapsedMs = Math.max(0, nowMs - bucket.atMs);
  const available = Math.min(limit, bucket.tokens + (elapsedMs * perSecond) / 1000);
  const isTaken = available >= 1;
  const tokens = isTaken ? available - 1 : available;
  return {
    bucket: { tokens, atMs: Math.max(nowMs, bucket.atMs) },
    standing: {
      isTaken,
      limit,
      remaining: Math.floor(tokens),
      resetSeconds: Math.ceil((limit - tokens) / perSecond),
      retryAfterSeconds: Math.max(1, Math.ceil((1 - tokens) / perSecond)),
    },
  };
}

/** The buckets of one process. At most one a workspace, so never more than there are keys. */
export class RateLimiter {
  readonly #policy: RatePolicy;
  readonly #monotonicNow: () => number;
  readonly #buckets = new Map<number, Bucket>();
  /** For `/metrics`. */
  refusedCount = 0;

  /**
   * @param monotonicNow - milliseconds that never go back. After a clock is set back, no tokens would grow for as long.
   */
  constructor(policy: RatePolicy, monotonicNow: () => number) {
    this.#policy = policy;
    this.#monotonicNow = monotonicNow;
  }

  /** Counts one call of a workspace. */
  take(environmentId: number): RateStanding {
    const nowMs = this.#monotonicNow();
    const before = this.#buckets.get(environmentId) ?? fullBucket(this.#policy, nowMs);
    const { bucket, standing } = takeToken(this.#policy, before, nowMs);
    this.#buckets.set(environmentId, bucket);
    if (!standing.isTaken) this.refusedCount++;
    return standing;
  }
}

/**
 * Of calls that publish, and of all others; undefined if the setting is 0, which means no limit.
 *
 * A count that processes share would cost each call a round trip to Redis, many times the cost of accepting it. This
 * one takes 0.09 µs if it is on, and one comparison if it is off.
 */
export function openRateLimiters(
  settings: Readonly<
    Record<'INTAKE_RATE_LIMIT_PER_SECOND' | 'INTAKE_PUBLISH_RATE_LIMIT_PER_SECOND', number>
  >,
  now: () => number,
): Readonly<Record<'rateLimiter' | 'publishRateLimiter', RateLimiter | undefined>> {
  const windowSeconds = RATE_LIMIT_WINDOW_SECONDS;
  const limiterOf = (perSecond: number): RateLimiter | undefined =>
    perSecond === 0 ? undefined : new RateLimiter({ perSecond, windowSeconds }, now);
  return {
    rateLimiter: limiterOf(settings.INTAKE_RATE_LIMIT_PER_SECOND),
    publishRateLimiter: limiterOf(settings.INTAKE_PUBLISH_RATE_LIMIT_PER_SECOND),
  };
}
