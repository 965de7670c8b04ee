/**
 * Credentials that were refused: counted by reason, logged now and then, and limited by the caller's address.
 *
 * Only wrong ones are limited: a caller who shares an address with a guesser (a company's proxy) passes with a token in
 * force. Counted in this process alone, because a guess that fails has no other cost.
 */
import { callerNetwork } from '@sluice/domain/delivery/network-address';
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import { sendProblem } from '../http/error-handling.ts';
import type { Problem } from '../http/problem.ts';

export type RefusalReason =
  | 'missing'
  /** It is not in force: unknown, revoked, expired, or of a closed account. */
  | 'not_in_force'
  | 'other_account'
  | 'ip_not_allowed'
  | 'too_many';

export interface RefusedCredentialsOptions {
  /** Wrong tokens of one address (of IPv6 its network of 64 bits) a minute that are answered 401. */
  readonly countMax: number;
  readonly monotonicNow: () => number;
  readonly logger: Pick<FastifyBaseLogger, 'warn'>;
}

export const REFUSED_PER_MINUTE_MAX = 60;
const MINUTE_MS = 60_000;
/** Past it everything is forgotten at once, as in `recent-answers.ts`. */
const ADDRESS_COUNT_MAX = 10_000;
const LOG_INTERVAL_MS = 10_000;
const HINT_LENGTH = 4;

export class RefusedCredentials {
  readonly #options: RefusedCredentialsOptions;
  /** Since the start, for `/metrics`. */
  readonly counts = new Map<RefusalReason, number>(
    (['missing', 'not_in_force', 'other_account', 'ip_not_allowed', 'too_many'] as const).map(
      (reason) => [reason, 0],
    ),
  );
  readonly #byAddress = new Map<string, { count: number; startedAtMs: number }>();
  #loggedAtMs = -Infinity;
  #unloggedCount = 0;

  constructor(options: RefusedCredentialsOptions) {
    this.#options = options;
  }

  /**
   * Notes a refusal.
   *
   * @param text - the credential as it was sent; its last characters are logged, as `token_hint` shows them.
   */
  note(request: FastifyRequest, reason: RefusalReason, text: string | undefined): void {
    this.counts.set(reason, (this.counts.get(reason) ?? 0) + 1);
    this.#unloggedCount++;
    const nowMs = this.#options.monotonicNow();
    if (nowMs - this.#loggedAtMs < LOG_INTERVAL_MS) return;
    this.#loggedAtMs = nowMs;
    const refusedCount = this.#unloggedCount;
    this.#unloggedCount = 0;
    this.#options.logger.warn(
      { reason, address: request.ip, hint: text?.slice(-HINT_LENGTH), refusedCount },
      'the API refused credentials; find their sender by address and by hint, the end of the last one',
    );
  }

  /**
   * Answers a call whose credentials are not in force: `problem`, or 429 beyond the limit of its address. Right
   * credentials from an address that they do not allow are no guess.
   */
  refuse(
    request: FastifyRequest,
    reply: FastifyReply,
    text: string | undefined,
    problem: Problem,
  ): ReturnType<typeof sendProblem> {
    if (problem.code === 'ip_not_allowed') {
      this.note(request, 'ip_not_allowed', text);
      return sendProblem(request, reply, problem);
    }
    // A call without credentials is no guess.
    const retryAfterSeconds = text === undefined ? undefined : this.#countGuess(request.ip);
    if (retryAfterSeconds === undefined) {
      this.note(request, text === undefined ? 'missing' : 'not_in_force', text);
      return sendProblem(request, reply, problem);
    }
    this.note(request, 'too_many', text);
    return sendProblem(request, reply, {
      code: 'rate_limited',
      message: `too many wrong tokens from this address; ${this.#options.countMax} a minute are answered, so try again in a minute`,
      retryAfterSeconds,
    });
  }

  /** @returns the time until the address may guess again; `undefined` if it may now. */
  #countGuess(ip: string): number | undefined {
    const nowMs = this.#options.monotonicNow();
    const address = callerNetwork(ip);
    let guesses = this.#byAddress.get(address);
    if (guesses === undefined || nowMs - guesses.startedAtMs >= MINUTE_MS) {
      if (this.#byAddress.size >= ADDRESS_COUNT_MAX) this.#byAddress.clear();
      guesses = { count: 0, startedAtMs: nowMs };
      this.#byAddress.set(address, guesses);
    }
    guesses.count++;
    if (guesses.count <= this.#options.countMax) return undefined;
    return Math.max(1, Math.ceil((guesses.startedAtMs + MINUTE_MS - nowMs) / 1_000));
  }
}
