/**
 * Refused credentials and refused access: counted by reason, logged now and then. Guesses are limited by address.
 *
 * Each refusal is a line of level `debug`. A line of level `warn` comes once in ten seconds and reason, so that an
 * attacker cannot fill the log.
 *
 * Only wrong ones are limited: a caller who shares an address with a guesser (a company's proxy) passes with a token in
 * force, and causes no statement here. All processes share one count of each address (`call-limit.ts`). Each answer 401
 * waits for it, so the limit is exact. Beyond the limit a process asks no more in this minute. Below it, one statement at
 * a time takes the guesses of up to 200 addresses.
 */
import type { Database } from '@sluice/database/connection/connection';
import { callerNetwork } from '@sluice/domain/delivery/network-address';
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify';
import { CallLimit, takeCallsTogetherIn } from './call-limit.ts';
import { sendProblem } from '../http/error-handling.ts';
import { PROBLEMS, type Problem } from '../http/problem.ts';

/** Codes of answers 403 for the rights of the caller, by role, scope, workspace or read-only mode. */
const ACCESS_REASONS = ['forbidden', 'read_only', 'environment_not_owned'] as const;
const CREDENTIAL_REASONS = [
  'missing',
  /** It is not in force: unknown, revoked, expired, or of a closed account. */
  'not_in_force',
  'other_account',
  'ip_not_allowed',
  'too_many',
] as const;

type AccessReason = (typeof ACCESS_REASONS)[number];
export type RefusalReason = (typeof CREDENTIAL_REASONS)[number] | AccessReason;

export interface RefusedCredentialsOptions {
  /**
   * Wrong tokens of one address (of IPv6 its network of 64 bits) a minute that are answered 401, by all processes
   * together. 0: no limit.
   */
  readonly countMax: number;
  readonly now: () => number;
  readonly database: Database;
  readonly monotonicNow: () => number;
  readonly logger: Pick<FastifyBaseLogger, 'warn' | 'debug'>;
}

export const REFUSED_PER_MINUTE_MAX = 60;
const MINUTE_MS = 60_000;
const LOG_INTERVAL_MS = 10_000;
const HINT_LENGTH = 4;

export class RefusedCredentials {
  readonly #options: RefusedCredentialsOptions;
  /** Since the start, for `/metrics`. */
  readonly counts = new Map<RefusalReason, number>(
    [...CREDENTIAL_REASONS, ...ACCESS_REASONS].map((reason) => [reason, 0]),
  );
  readonly #guesses: CallLimit;
  readonly #logged = new Map<RefusalReason, { atMs: number; unloggedCount: number }>();

  constructor(options: RefusedCredentialsOptions) {
    this.#options = options;
    const { countMax, now, database } = options;
    this.#guesses = new CallLimit({
      name: 'wrong tokens of',
      countMax,
      windowMs: MINUTE_MS,
      now,
      takeCalls: takeCallsTogetherIn(database, MINUTE_MS),
    });
  }

  /**
   * Notes a refusal.
   *
   * @param text - the credential as it was sent; its last characters are logged, as `token_hint` shows them.
   */
  note(request: FastifyRequest, reason: RefusalReason, text: string | undefined): void {
    this.counts.set(reason, (this.counts.get(reason) ?? 0) + 1);
    const { logger, monotonicNow } = this.#options;
    const { method, routeOptions } = request;
    const hint = text?.slice(-HINT_LENGTH);
    const refusal = { reason, address: request.ip, hint, method, route: routeOptions.url };
    logger.debug(refusal, 'the API refused a call for its credentials or their rights');
    const last = this.#logged.get(reason) ?? { atMs: -Infinity, unloggedCount: 0 };
    this.#logged.set(reason, last);
    last.unloggedCount++;
    const nowMs = monotonicNow();
    if (nowMs - last.atMs < LOG_INTERVAL_MS) return;
    logger.warn(
      { ...refusal, refusedCount: last.unloggedCount },
      'the API refused calls for their credentials or their rights; find the sender by address and by hint, the end of the last credential',
    );
    last.atMs = nowMs;
    last.unloggedCount = 0;
  }

  /** Notes the answer if it is a 403 for the rights of the caller. */
  noteAnswer(request: FastifyRequest): void {
    const reason = ACCESS_REASONS.find((code) => code === request.problemCode);
    if (reason) this.note(request, reason, request.headers.authorization);
  }

  /**
   * Answers a call whose credentials are not in force: `problem`, or 429 beyond the limit of its address. Right
   * credentials from an address that they do not allow are no guess.
   */
  async refuse(
    request: FastifyRequest,
    reply: FastifyReply,
    text: string | undefined,
    problem: Problem,
  ): Promise<FastifyReply> {
    if (PROBLEMS[problem.code].status === 403) {
      if (problem.code === 'ip_not_allowed') this.note(request, 'ip_not_allowed', text);
      return sendProblem(request, reply, problem);
    }
    // A call without credentials is no guess.
    const retryAfterSeconds = text === undefined ? undefined : await this.#countGuess(request.ip);
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
  async #countGuess(ip: string): Promise<number | undefined> {
    if (this.#options.countMax === 0) return undefined;
    const { isExceeded, resetSeconds } = await this.#guesses.take(callerNetwork(ip));
    return isExceeded ? resetSeconds : undefined;
  }
}
