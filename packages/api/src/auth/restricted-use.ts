/** What a credential may be bound to, whatever else it may: reads alone, and addresses. */
import type { FastifyRequest } from 'fastify';
import type { Problem } from '../http/problem.ts';
import { isAllowedFrom } from './ip-allowlist.ts';

export interface RestrictedUse {
  /** For GET and HEAD alone. */
  readonly isReadOnly: boolean;
  /** Addresses and CIDR blocks that it may be used from; empty: from anywhere. */
  readonly ipAllowlist: readonly string[];
}

/**
 * Why the call may not be made with it; undefined where it may.
 *
 * @param what - how the message calls the credential.
 */
export function refuseUse(
  { ip, method }: FastifyRequest,
  { isReadOnly, ipAllowlist }: RestrictedUse,
  what: 'token' | 'key',
): Problem | undefined {
  if (!isAllowedFrom(ip, ipAllowlist))
    return { code: 'ip_not_allowed', message: `the ${what} may not be used from this address` };
  if (isReadOnly && method !== 'GET' && method !== 'HEAD')
    return { code: 'read_only', message: `the ${what} may only read` };
  return undefined;
}
