/** Keys and tokens in words. Pure. */

export type CredentialType = 'pipelines' | 'tracking' | 'app' | 'service_account';

export interface Credential {
  readonly id: number;
  readonly name: string;
  readonly type: CredentialType;
  /** Null for a token of a service account. */
  readonly environment_id: number | null;
  readonly service_account_id: number | null;
  readonly site_id: string | null;
  readonly token_hint: string;
  readonly role: string | null;
  readonly scopes: readonly string[];
  readonly ip_allowlist: readonly string[];
  readonly read_only: boolean;
  readonly testing: boolean;
  /** Null: made by a token. */
  readonly created_by_user_id: number | null;
  readonly last_used_at: string | null;
  readonly last_used_ip: string | null;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly created_at: string;
}

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
