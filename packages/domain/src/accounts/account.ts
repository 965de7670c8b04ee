/**
 * Rights in an account (`account-conventions.md` §3.1): roles, each of which includes the one below it, and scopes,
 * which a token has besides its role.
 */

/** From the least to the most. */
export const ROLES = ['member', 'billing_admin', 'account_admin'] as const;

export type Role = (typeof ROLES)[number];

/** Rights that no role includes. `partners:write` and `fleet:read` are for the operator's own staff. */
export const SCOPES = ['usage:write', 'partners:write', 'fleet:read'] as const;

export type Scope = (typeof SCOPES)[number];

/** True if `role` includes the rights of `needed`. */
export function includesRole(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

/**
 * How many credentials in force a workspace may have, of all types together, and how many tokens of service accounts
 * an account may have. The specs name no number; products of this kind allow between 5 and some hundreds. Intake
 * keeps all keys in use in memory.
 */
export const CREDENTIAL_COUNT_MAX = 200;

/** The products that may be switched on for an account. */
export const PRODUCTS = ['journeys', 'pipelines', 'inbox_previews', 'design_studio'] as const;
