/**
 * Nobody gives more than they have. A credential that a token makes, or whose new secret it gets, has no scope that
 * the token lacks, may be used from no address that the token may not, and expires no later. Write
 * keys have no address list, so a token with one makes none. An access token may give what the token it came from may give: its
 * 15 minutes limit how long it is lent, not what it may give. A token that is bound to addresses or expires lets no user
 * in, and changes no user's role or workspaces.
 *
 * Before: `credential-secrets.ts`. The role is the route's to ask for.
 */
import type { Credential } from '@sluice/database/accounts/api-credentials';
import { isWithinAllowlist } from '../auth/ip-allowlist.ts';
import type { Problem } from '../http/problem.ts';

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
      `a token ${done} with this token needs an ip_allowlist within its own: ${own.ipAllowlist.join(', ')}`,
    );
  if (own.expiresAt && (wanted.expiresAt === null || wanted.expiresAt > own.expiresAt))
    return forbidden(
      `a token ${done} with this token must not expire after it: ${own.expiresAt.toISOString()}`,
    );
  return undefined;
}

/** Why the holder must not let users in: a user calls from any address, and has no end. */
export function refuseBound({
  ipAllowlist,
  expiresAt,
}: Pick<Reach, 'ipAllowlist' | 'expiresAt'>): Problem | undefined {
  if (ipAllowlist.length > 0)
    return forbidden(
      'a token that is bound to addresses cannot invite or admit users, who may sign in from any address; use another token',
    );
  if (expiresAt)
    return forbidden(
      'a token that expires cannot invite or admit users, whose role has no end; use another token',
    );
  return undefined;
}

const forbidden = (message: string): Problem => ({ code: 'forbidden', message });
