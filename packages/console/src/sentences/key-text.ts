/** Keys and tokens in words. Pure. */
import type { Described } from '../client/operations.ts';

export type Credential = Described<'ApiCredential'>;
export type CredentialType = Credential['type'];

export const KEY_TYPES: Readonly<Record<CredentialType, string>> = {
  pipelines: 'write key (Pipelines)',
  tracking: 'Track API key',
  app: 'app key',
  service_account: 'account token',
};

export function stateOfKey(
  { revoked_at: revokedAt, expires_at: expiresAt }: Pick<Credential, 'revoked_at' | 'expires_at'>,
  nowMs: number,
): 'in force' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs ? 'expired' : 'in force';
}
