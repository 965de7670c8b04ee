/**
 * Nobody gives more than they have: what a token makes, and what it comes to hold the new secret of, has no scope that
 * the token lacks, may be used from no address that it may not, and expires no later. Keys of workspaces have no
 * addresses of their own, so a token with some makes none. An access token gives what the token it came from may:
 * its 15 minutes are how long it is lent, not how far that reaches.
 *
 * Before: `credential-secrets.ts`. The role is the route's to ask for.
 */
import type { Credential } from '@sluice/database/api-credentials';
import { isWithinAllowlist } from './ip-allowlist.ts';
import type { Problem } from './problem.ts';

type Reach = Pick<Credential, 'scopes' | 'ipAllowlist' | 'expiresAt'>;

/** Why the holder of one must not come to hold the other; undefined where it may. */
export function refuseBeyond(
  own: Reach,
  wanted: Reach,
  done: 'made' | 'rotated',
): Problem | undefined {
  const scopes = wanted.scopes.filter((each) => !own.scopes.includes(each));
  if (scopes.length > 0)
    return forbidden(
      `a token with the scopes ${scopes.join(', ')} can only be ${done} with one that has them`,
    );
  if (!isWithinAllowlist(wanted.ipAllowlist, own.ipAllowlist))
    return forbidden(
      `with this token only one whose ip_allowlist lies within its own can be ${done}: ${own.ipAllowlist.join(', ')}`,
    );
  if (own.expiresAt && (wanted.expiresAt === null || wanted.expiresAt > own.expiresAt))
    return forbidden(
      `with this token only what expires no later than it does can be ${done}: ${own.expiresAt.toISOString()}`,
    );
  return undefined;
}

const forbidden = (message: string): Problem => ({ code: 'forbidden', message });
