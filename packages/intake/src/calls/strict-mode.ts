/**
 * Strict mode (`X-Strict-Mode: 1`, or `true`): a wrong call is refused with its reasons. Without it the Pipelines API
 * accepts the call and records the reasons in the issues log; the Track API always refuses (`ingestion-conventions.md`
 * §3).
 *
 * The one place of the decision. A request and a stream ask {@link isStrictMode} for their head (`http/`, `stream/`).
 * The consequences are in `accept.ts` and `stream/take-stream.ts`, which records a bad line and goes on.
 * `STRICT_ERRORS` of `domain/src/operations/issue.ts` has the warnings that are errors in strict mode.
 */
import { isTrue } from '@sluice/domain/value-rules/boolean-rule';
import type { Call } from './calls.ts';

/** True for a value of `X-Strict-Mode` that asks for strict mode, `1` or `true`. Empty if the header was absent. */
export const isStrictMode = (header: string): boolean => header !== '' && isTrue(header);

/** True if a wrong call is accepted and recorded instead of refused. */
export const isPermissive = (call: Pick<Call, 'api'>, isStrict: boolean): boolean =>
  call.api === 'pipelines' && !isStrict;

/** Maximum size of the inflated body, in bytes. */
export const sizeBytesMaxOf = (
  call: Pick<Call, 'strictSizeBytesMax' | 'sizeBytesMax'>,
  isStrict: boolean,
): number => (isStrict ? call.strictSizeBytesMax : call.sizeBytesMax);
