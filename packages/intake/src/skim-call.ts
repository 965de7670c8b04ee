/**
 * The short way of a plain track call: steps 2 to 6 without reading its body as a value.
 *
 * Declined is whatever needs the long way of `accept.ts`: other calls, credentials that are not known or only
 * tested, a workspace that is watched, a body that `track-skimmer.ts` declines. Nothing has happened then.
 *
 * Before: `exchange.ts`. After: `batcher.ts`.
 */
import { commitSkimmed, RATE_LIMITED, type AcceptDependencies, type AnswerCall } from './accept.ts';
import type { Call } from './calls.ts';
import type { TrackSkimmer } from './track-skimmer.ts';

/** A call whose body is not compressed, or no longer. */
export interface SkimSubmission {
  readonly call: Call;
  /** The `Authorization` header; empty where there was none. */
  readonly authorization: string;
  readonly isStrict: boolean;
  /** Not used after `SkimCall` returns. */
  readonly bytes: Uint8Array;
}

/** Takes one call, and then calls `answer` exactly once; or returns false. */
export type SkimCall = (submission: SkimSubmission, answerCall: AnswerCall) => boolean;

export function createSkimCall(deps: AcceptDependencies, skimmer: TrackSkimmer): SkimCall {
  return ({ call, authorization, isStrict, bytes }, answerCall) => {
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
    if (standing?.isTaken === false) answerCall(RATE_LIMITED, standing);
    else commitSkimmed(deps, operations, bytes.length, answerCall, standing);
    return true;
  };
}
