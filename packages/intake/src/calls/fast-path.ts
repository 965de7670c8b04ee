/**
 * The fast path of a simple track call: steps 2 to 6 without reading its body as a value.
 *
 * It declines every call that needs the slow path of `accept.ts`: other calls, credentials that are unknown or only
 * tested, a workspace that is tailed, a body that `fast-track-parser.ts` declines. A declined call has had no effect.
 *
 * Before: `exchange.ts`. After: `batcher.ts`.
 */
import type { Outcome } from './outcome.ts';
import { overloaded, RATE_LIMITED, type AcceptDependencies } from './accept.ts';
import { ACCEPTED } from './outcome.ts';
import type { Call } from './calls.ts';
import type { CommitCaller, CommitOutcome } from '../groups/commit-group.ts';
import type { RateStanding } from '../auth/rate-limit.ts';
import type { FastTrackParser } from '../groups/fast-track-parser.ts';

/** A call whose body is not compressed, or no longer. `exchange.ts` is one, so no further object is made for it. */
export interface FastPathCaller extends CommitCaller {
  readonly call: Call;
  /** The `Authorization` header; empty if the call has no such header. */
  readonly authorization: string;
  readonly isStrict: boolean;
  /** Looks for a key that an object has twice, as its mode wants it (`repeated-key.ts`). */
  mayRepeatKey(bytes: Uint8Array): boolean;
  /** True if the demo's credentials may be used for the call. */
  mayUseDemo(): boolean;
  /** Set before any answer, if the workspace has a limit. */
  standing: RateStanding | undefined;
  answer(outcome: Outcome): void;
}

export interface FastPath {
  /**
   * Takes one call, of which then either `answer` or `committed` is called, exactly once; or returns false. `bytes` are
   * not used after it returns.
   */
  take(caller: FastPathCaller, bytes: Uint8Array): boolean;
  /** The answer to a call that was committed, or could not be. */
  outcomeOf(committed: CommitOutcome): Outcome;
}

export function createFastPath(deps: AcceptDependencies, parser: FastTrackParser): FastPath {
  const take = (caller: FastPathCaller, bytes: Uint8Array): boolean => {
    const { call, authorization, isStrict } = caller;
    // Without the header the key may be in the body.
    if (call.fastPathForm === undefined || authorization === '') return false;
    if (isStrict && bytes.length > call.strictSizeBytesMax) return false;
    const authentication = deps.keys.authenticatePipelines(authorization);
    if (authentication.outcome === 'unknown') return false;
    const { environmentId, testKey, isDemo } = authentication.workspace;
    if (isDemo && !caller.mayUseDemo()) return false;
    if (testKey !== undefined || deps.tail?.isTailed(environmentId)) return false;
    const receivedAtMs = deps.now();
    const operations = parser.parse(
      bytes,
      call.fastPathForm === 'batch',
      environmentId,
      receivedAtMs,
    );
    if (operations === undefined) return false;
    // The slow path reports it.
    if (caller.mayRepeatKey(bytes)) return false;

    caller.standing = deps.rateLimiter?.take(environmentId);
    if (caller.standing?.isTaken === false) caller.answer(RATE_LIMITED);
    else if (!deps.batcher.addParsed(environmentId, operations, bytes.length, caller))
      caller.answer(overloaded(deps));
    return true;
  };
  return {
    take,
    outcomeOf: (committed) => (committed === 'committed' ? ACCEPTED : overloaded(deps)),
  };
}
