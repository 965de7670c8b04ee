/**
 * Credentials of a call: its `Authorization` header, or the write key in the body of a call of Pipelines.
 *
 * Before: `calls/accept.ts`. After: `authenticate.ts`, which knows the keys.
 */
import { endOfKey, hintOf, type Authentication, type KeyRing } from './authenticate.ts';
import type { Refusal } from './unauthorized-recorder.ts';

export interface ShownCredentials {
  readonly api: 'pipelines' | 'track';
  /** The header; empty if it is absent. */
  readonly authorization: string;
  /** Undefined if it could not be read. */
  readonly body: unknown;
}

export function findShown(keys: KeyRing, shown: ShownCredentials): Authentication {
  const { api, authorization } = shown;
  if (api === 'track') return keys.authenticateTrack(authorization);
  if (authorization !== '') return keys.authenticatePipelines(authorization);
  return keys.authenticateWriteKey(writeKeyIn(shown));
}

/** The key in the body; empty if the body has no key. */
function writeKeyIn({ body }: ShownCredentials): string {
  const writeKey =
    typeof body === 'object' && body !== null
      ? (body as { writeKey?: unknown }).writeKey
      : undefined;
  return typeof writeKey === 'string' ? writeKey : '';
}

/** For the log: a mistyped key of a permissive call is answered 200, so its sender does not see the refusal. */
export function refusalOf(keys: KeyRing, shown: ShownCredentials): Refusal {
  const { authorization } = shown;
  const hint = authorization === '' ? endOfKey(writeKeyIn(shown)) : hintOf(authorization);
  if (findShown(keys, shown).outcome === 'known') return { reason: 'untested_key', hint };
  return { reason: hint === undefined ? 'missing' : 'not_in_force', hint };
}
