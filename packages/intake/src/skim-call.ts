/**
 * The short way of a plain track call: steps 2 to 6 without reading its body as a value.
 *
 * Declined is whatever needs the long way of `accept.ts`: other calls, credentials that are not known or only
 * tested, a workspace that is watched, a body that `track-skimmer.ts` declines. Nothing has happened then.
 *
 * Before: `exchange.ts`. After: `batcher.ts`.
 */
import { commitSkimmed, RATE_LIMITED, type AcceptDependencies, type Outcome } from './accept.ts';
import type { Call } from './calls.ts';
import type { RateStanding } from './rate-limit.ts';
import type { TrackSkimmer } from './track-skimmer.ts';

/** A call whose body is not compressed, or no longer. `exchange.ts` is one: there is nothing else to make for it. */
export interface SkimCaller {
  readonly call: Call;
  /** The `Authorization` header; empty where there was none. */
  readonly authorization: string;
  readonly isStrict: boolean;
  answer(outcome: Outcome, standing?: RateStanding): void;
}

/** Takes one call, whose `answer` is then called exactly once; or returns false. `bytes` are not used after it returns. */
export type SkimCall = (caller: SkimCaller, bytes: Uint8Array) => boolean;

export function createSkimCall(deps: AcceptDependencies, skimmer: TrackSkimmer): SkimCall {
  return (caller, bytes) => {
    const { call, authorization, isStrict } = caller;
    // Without the header the key may be in the body.
    if (call.skimsAs === undefined || authorization === '') return false;
    if (isStrict && bytes.length > call.strictSizeBytesMax) return false;
    const authentication = deps.keys.authenticatePipelines(authorization);
    if (authentication.outcome === 'unknown') return false;
    const { environmentId, testKey } = authentication.workspace;
    if (testKey !== undefined || deps.tail?.isWatched(environmentId)) return false;
    const receivedAtMs = deps.now();
    const operations = skimmer.skim(bytes, call.skimsAs === 'batch', environmentId, receivedAtMs);
    if (operations === undefined) return false;

    const standing = deps.rateLimiter?.take(environmentId, receivedAtMs);
    if (standing?.isTaken === false) caller.answer(RATE_LIMITED, standing);
    else commitSkimmed(deps, operations, bytes.length, caller, standing);
    return true;
  };
}
