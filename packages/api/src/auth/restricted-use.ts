/** Restrictions of a credential beside its rights: to reads, to addresses, and to users with a required second factor. */
import type { FastifyRequest } from 'fastify';
import { isRead } from '../http/call-kind.ts';
import type { Problem } from '../http/problem.ts';
import { isAllowedFrom } from './ip-allowlist.ts';

export interface RestrictedUse {
  /** For calls that only read. */
  readonly isReadOnly: boolean;
  /** Addresses and CIDR blocks that it may be used from. Empty: any address. */
  readonly ipAllowlist: readonly string[];
  /** Of a program whose account requires two factors, and whose user has only one. */
  readonly isFactorMissing: boolean;
}

/**
 * Reason why the call may not be made with it; undefined if it may.
 *
 * @param what - name of the credential in the message.
 */
export function refuseUse(
  request: FastifyRequest,
  { isReadOnly, ipAllowlist, isFactorMissing }: RestrictedUse,
  what: 'token' | 'key',
): Problem | undefined {
  if (!isAllowedFrom(request.ip, ipAllowlist))
    return {
      code: 'ip_not_allowed',
      message: `the ${what} may not be used from this address; use an address of its ip_allowlist`,
    };
  if (isFactorMissing) return PROGRAM_WITHOUT_FACTOR;
  if (isReadOnly && !isRead(request))
    return { code: 'read_only', message: `the ${what} may only read; use one that may write` };
  return undefined;
}

/** The answer to a program whose user has only one factor in an account that requires two. */
export const PROGRAM_WITHOUT_FACTOR: Problem = {
  code: 'forbidden',
  message:
    'this account requires two factors, and the user of this program has only one; sign in to the console and set up an authenticator app, then call again',
};
