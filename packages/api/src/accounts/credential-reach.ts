/**
 * A token cannot create a credential with more rights than its own. This holds for a credential that it makes, and for
 * one whose new secret it gets: no scope that the token lacks, no address that the token may not use, and no later
 * expiry. Write keys have no address list, so a token with one cannot make them. An access token may give the rights of
 * the token it came from: its 15 minutes limit its own life, not the rights that it gives. A token that is bound to
 * addresses or expires lets no user in, and changes no user's role or workspaces.
 *
 * Before: `credential-secrets.ts`. The role is the route's to ask for.
 */
import type { Credential } from '@sluice/database/accounts/api-credentials';
import { isWithinAllowlist } from '../auth/ip-allowlist.ts';
import type { Problem } from '../http/problem.ts';

type Reach = Pick<Credential, 'scopes' | 'ipAllowlist' | 'expiresAt'>;

/** Reason why the holder of one must not get the other; undefined if it may. */
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
