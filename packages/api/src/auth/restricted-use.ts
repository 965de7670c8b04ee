/** Restrictions of a credential beside its rights: to reads, and to addresses. */
import type { FastifyRequest } from 'fastify';
import { isRead } from '../http/call-kind.ts';
import type { Problem } from '../http/problem.ts';
import { isAllowedFrom } from './ip-allowlist.ts';

export interface RestrictedUse {
  /** For calls that only read. */
  readonly isReadOnly: boolean;
  /** Addresses and CIDR blocks that it may be used from. Empty: any address. */
  readonly ipAllowlist: readonly string[];
}

/**
 * Reason why the call may not be made with it; undefined if it may.
 *
 * @param what - name of the credential in the message.
 */
export function refuseUse(
  request: FastifyRequest,
  { isReadOnly, ipAllowlist }: RestrictedUse,
  what: 'token' | 'key',
): Problem | undefined {
  if (!isAllowedFrom(request.ip, ipAllowlist))
    return {
      code: 'ip_not_allowed',
      message: `the ${what} may not be used from this address; use an address of its ip_allowlist`,
    };
  if (isReadOnly && !isRead(request))
    return { code: 'read_only', message: `the ${what} may only read; use one that may write` };
  return undefined;
}
