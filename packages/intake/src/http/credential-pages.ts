/**
 * The two GETs that clients test their Track credentials with (`ingestion-conventions.md` §1.1).
 *
 * They answer from memory, like every call, so they say nothing about the broker: `/readyz` does.
 */
import { problem } from './answer.ts';
import type { KeyRing } from '../auth/authenticate.ts';
import type { Page } from './page.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

interface CredentialDependencies {
  readonly keys: KeyRing;
  readonly recordUnauthorized: (source: string, environmentId: number | undefined) => void;
}

/** `GET /auth`: 200 where the site id and key are in force. */
export function authPage(deps: CredentialDependencies, authorization: string): Page {
  return withWorkspace(deps, 'track.auth', authorization, () => ({}));
}

/**
 * `GET /api/v1/accounts/region`. `url` is the host that was asked: there are no other regions, and a client that
 * follows it stays where it is.
 */
export function regionPage(
  deps: CredentialDependencies,
  authorization: string,
  host: string,
  region: 'us' | 'eu',
): Page {
  return withWorkspace(deps, 'track.v1.region', authorization, (environmentId) => ({
    url: host,
    region,
    environment_id: environmentId,
  }));
}

function withWorkspace(
  { keys, recordUnauthorized }: CredentialDependencies,
  source: string,
  authorization: string,
  show: (environmentId: number) => object,
): Page {
  const found = keys.authenticateTrack(authorization);
  if (found.outcome === 'unknown') {
    recordUnauthorized(source, found.siteEnvironmentId);
    return {
      status: '401 Unauthorized',
      contentType: JSON_TYPE,
      body: problem(401, 'unauthorized', UNAUTHORIZED_MESSAGE),
      authenticate: true,
    };
  }
  return {
    status: '200 OK',
    contentType: JSON_TYPE,
    body: `${JSON.stringify(show(found.workspace.environmentId))}\n`,
  };
}

const UNAUTHORIZED_MESSAGE = 'Unauthorized request: the credentials are missing or not in force';
