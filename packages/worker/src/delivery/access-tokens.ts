/**
 * Access tokens of webhooks with an OAuth2 client.
 *
 * They are in this process's memory, behind it in Postgres, which all workers share, and behind that at the token
 * server.
 *
 *   memory ─▶ Postgres (token in force) ─▶ claim ─▶ token server ─▶ Postgres ─▶ memory
 *                        └─ another fetches, ask again soon
 * A webhook has one fetch at most at a time: requests of one process share it, and the claim keeps other workers off
 * (`database/src/webhooks/webhook-tokens.ts`). A claim outlives its fetch by a second, and ends by itself if its worker
 * is killed. A token is renewed before its time is over, and counts only for the version of the webhook it was fetched
 * for. Used by `authorized-post.ts`; `fetch-token.ts` asks the server.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { nameOf } from '@sluice/database/delivery/lanes';
import { claimToken, keepToken, releaseToken } from '@sluice/database/webhooks/webhook-tokens';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { HttpClient } from '../http/http-client.ts';
import type { TokenSource } from '../lane/endpoint-access.ts';
import { fetchToken } from './fetch-token.ts';

export interface AccessTokensDeps {
  readonly database: Database;
  readonly post: HttpClient['post'];
  readonly openSecret: (environmentId: number, encrypted: string) => string;
  readonly encryptSecret: (environmentId: number, text: string) => string;
  /** Longest time of one request to a token server. */
  readonly fetchTimeoutMs: number;
  /** Never set back. */
  readonly monotonicNow: () => number;
}

export type TokenOutcome =
  | {
      readonly outcome: 'token';
      readonly value: string;
      /** Names it. */
      readonly number: number;
      /** It was fetched for this request, or while this request waited. */
      readonly isFresh: boolean;
    }
  /** The message is for the webhook's owner. */
  | { readonly outcome: 'none'; readonly message: string };

interface KeptToken {
  readonly endpointVersion: number;
  readonly value: string;
  readonly number: number;
  readonly usableUntilMs: number;
}

interface Flight {
  readonly endpointVersion: number;
  readonly result: Promise<TokenOutcome>;
}

/** A token is renewed so long before its end, or after three quarters of a short life. */
const RENEWED_BEFORE_END_MS = 30_000;
const RENEWED_AFTER_SHARE = 0.75;
/** Time by which a claim outlives its request, for the statement that records the result. */
const CLAIM_MARGIN_MS = 1_000;
const ASK_AGAIN_MS = 50;
/** Webhooks whose tokens are in memory; beyond it the first kept one is forgotten, and Postgres has it. */
const KEPT_MAX = 10_000;

export class AccessTokens {
  readonly #deps: AccessTokensDeps;
  readonly #kept = new Map<string, KeptToken>();
  readonly #flights = new Map<string, Flight>();

  constructor(deps: AccessTokensDeps) {
    this.#deps = deps;
  }

  /**
   * A token that may be used now. May be called at the same time.
   *
   * @param deadlineMs - by the monotonic clock; by then it returns without a token.
   * @param rejected - the number of a token that the endpoint does not take any more: the result is another one.
   * @throws if Postgres is away.
   */
  async get(
    source: TokenSource,
    deadlineMs: number,
    rejected: number | null = null,
  ): Promise<TokenOutcome> {
    const name = nameOf(source.webhook);
    const { endpointVersion } = source;
    for (;;) {
      const kept = this.#kept.get(name);
      if (kept && this.#isUsable(kept, endpointVersion, rejected))
        return { outcome: 'token', value: kept.value, number: kept.number, isFresh: false };
      const leftMs = Math.floor(deadlineMs - this.#deps.monotonicNow());
      if (leftMs <= 0) return TOO_LATE;
      const flight = this.#flights.get(name) ?? this.#begin(name, source, deadlineMs, rejected);
      const result = await within(flight.result, leftMs);
      // Too late for the request that began it, perhaps another one. Or it is the rejected token, or of another
      // version.
      if (result === TOO_LATE || flight.endpointVersion !== endpointVersion) continue;
      if (result.outcome === 'none' || result.number !== rejected) return result;
    }
  }

  #isUsable(kept: KeptToken, endpointVersion: number, rejected: number | null): boolean {
    return (
      kept.endpointVersion === endpointVersion &&
      kept.number !== rejected &&
      kept.usableUntilMs > this.#deps.monotonicNow()
    );
  }

  #begin(name: string, source: TokenSource, deadlineMs: number, rejected: number | null): Flight {
    const result = this.#obtain(name, source, deadlineMs, rejected).finally(() =>
      this.#flights.delete(name),
    );
    // Waiting requests get the error; perhaps no request waits any more.
    result.catch(() => {});
    const flight = { endpointVersion: source.endpointVersion, result };
    this.#flights.set(name, flight);
    return flight;
  }

  async #obtain(
    name: string,
    source: TokenSource,
    deadlineMs: number,
    unwanted: number | null,
  ): Promise<TokenOutcome> {
    const { database, monotonicNow, fetchTimeoutMs } = this.#deps;
    const { webhook, endpointVersion } = source;
    let rejected = unwanted;
    for (;;) {
      const leftMs = Math.floor(deadlineMs - monotonicNow());
      if (leftMs <= 0) return TOO_LATE;
      const timeoutMs = Math.min(fetchTimeoutMs, leftMs);
      const claimMs = timeoutMs + CLAIM_MARGIN_MS;
      const claim = await claimToken(database, { webhook, endpointVersion, rejected, claimMs });
      if (claim.outcome === 'claimed')
        return this.#fetch(name, source, claim.number, Math.max(1, timeoutMs));
      if (claim.outcome === 'outdated') return OUTDATED;
      if (claim.outcome === 'usable') {
        const { number, leftMs: usableMs } = claim;
        const value = this.#opened(webhook, claim.token);
        if (value !== undefined) {
          this.#keep(name, { endpointVersion, value, number }, usableMs);
          return { outcome: 'token', value, number, isFresh: false };
        }
        rejected = number;
      } else await sleep(Math.min(ASK_AGAIN_MS, leftMs));
    }
  }

  async #fetch(
    name: string,
    { webhook, endpointVersion, client, tls }: TokenSource,
    claim: number,
    timeoutMs: number,
  ): Promise<TokenOutcome> {
    const { database, post, encryptSecret, monotonicNow } = this.#deps;
    const askedAtMs = monotonicNow();
    const fetched = await fetchToken(post, client, tls, timeoutMs);
    if (fetched.outcome === 'none') {
      await releaseToken(database, webhook, claim);
      return fetched;
    }
    const { token: value, lifetimeMs } = fetched;
    const usableMs =
      Math.max(lifetimeMs - RENEWED_BEFORE_END_MS, lifetimeMs * RENEWED_AFTER_SHARE) -
      (monotonicNow() - askedAtMs);
    const token = encryptSecret(webhook.environmentId, value);
    await keepToken(database, webhook, claim, { token, endpointVersion, usableMs });
    this.#keep(name, { endpointVersion, value, number: claim }, usableMs);
    return { outcome: 'token', value, number: claim, isFresh: true };
  }

  #keep(name: string, token: Omit<KeptToken, 'usableUntilMs'>, usableMs: number): void {
    this.#kept.delete(name);
    this.#kept.set(name, { ...token, usableUntilMs: this.#deps.monotonicNow() + usableMs });
    if (this.#kept.size <= KEPT_MAX) return;
    const [first = ''] = this.#kept.keys();
    this.#kept.delete(first);
  }

  /** Undefined if its encryption key is not in use any more. */
  #opened({ environmentId }: LaneKey, encrypted: string): string | undefined {
    try {
      return this.#deps.openSecret(environmentId, encrypted);
    } catch {
      return undefined;
    }
  }
}

const TOO_LATE: TokenOutcome = {
  outcome: 'none',
  message: 'no access token came in time; check the token URL',
};
const OUTDATED: TokenOutcome = {
  outcome: 'none',
  message:
    'the webhook was changed while its access token was fetched; the next attempt uses the change',
};

async function within(result: Promise<TokenOutcome>, durationMs: number): Promise<TokenOutcome> {
  const over = new AbortController();
  const late = sleep(durationMs, TOO_LATE, { signal: over.signal }).catch(() => TOO_LATE);
  return Promise.race([result, late]).finally(() => over.abort());
}
