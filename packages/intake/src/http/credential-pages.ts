/**
 * The two GETs that clients test their Track credentials with (`ingestion-conventions.md` §1.1).
 *
 * They answer from memory, like every call, so they do not show the state of the broker: `/readyz` does.
 */
import { DEMO_ELSEWHERE_MESSAGE } from '@sluice/domain/accounts/demo-calls';
import { problem } from './answer.ts';
import { hintOf, type KeyRing } from '../auth/authenticate.ts';
import { refusalOf } from '../auth/shown-credentials.ts';
import type { Refusal } from '../auth/unauthorized-recorder.ts';
import { JSON_TYPE, type Asked, type Page } from './page.ts';

/** Keys, and the record of keys that were refused. */
export interface CredentialDependencies {
  readonly keys: KeyRing;
  readonly recordUnauthorized: (
    source: string,
    environmentId: number | undefined,
    refusal: Refusal,
  ) => void;
}

/** `GET /auth`: 200 if the site id and key are in force. */
export function authPage(deps: CredentialDependencies, asked: Asked): Page {
  return withWorkspace(deps, 'track.auth', asked, () => ({}));
}

/**
 * `GET /api/v1/accounts/region`. `url` is the host that was asked: there are no other regions, and a client that
 * follows it stays at its host.
 */
export function regionPage(deps: CredentialDependencies, asked: Asked, region: 'us' | 'eu'): Page {
  return withWorkspace(deps, 'track.v1.region', asked, (environmentId) => ({
    url: asked.host,
    region,
    environment_id: environmentId,
  }));
}

function withWorkspace(
  { keys, recordUnauthorized }: CredentialDependencies,
  source: string,
  { authorization, mayUseDemo }: Asked,
  show: (environmentId: number) => object,
): Page {
  const found = keys.authenticateTrack(authorization);
  if (found.outcome === 'unknown') {
    const shown = { api: 'track', authorization, body: undefined } as const;
    recordUnauthorized(source, found.siteEnvironmentId, refusalOf(keys, shown));
    return unauthorized(UNAUTHORIZED_MESSAGE);
  }
  const { environmentId, isDemo } = found.workspace;
  if (isDemo && !mayUseDemo) {
    const refusal = { reason: 'demo_elsewhere', hint: hintOf(authorization) } as const;
    recordUnauthorized(source, environmentId, refusal);
    return unauthorized(DEMO_ELSEWHERE_MESSAGE);
  }
  return {
    status: '200 OK',
    contentType: JSON_TYPE,
    body: `${JSON.stringify(show(environmentId))}\n`,
  };
}

const unauthorized = (message: string): Page => ({
  status: '401 Unauthorized',
  contentType: JSON_TYPE,
  body: problem(401, 'unauthorized', message),
  authenticate: true,
});

const UNAUTHORIZED_MESSAGE = 'Unauthorized request: the credentials are missing or not in force';
