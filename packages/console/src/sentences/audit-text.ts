/** Entries of the audit log in words. Pure. */
import type { Described } from '../client/operations.ts';

/** The kinds of actors, and their names. */
export const ACTOR_TYPES = {
  user: 'Users',
  service_account: 'Keys and tokens',
  portal: 'Customers, in the portal',
  system: 'Sluice itself',
} as const;

export type AuditEntry = Described<'AuditLog'>;

/** Name of the actor: the email of a user, the name of a token or a key, or the service. */
export function actorText({
  type,
  name,
  email,
}: Pick<AuditEntry['actor'], 'type' | 'name' | 'email'>): string {
  if (type === 'system') return 'Sluice itself';
  if (type === 'user') return email ?? 'a user';
  if (type === 'portal') return `${name ?? 'a customer'}, in the portal`;
  return name ?? 'a program';
}

/** A value as a diff shows it. Undefined and null: a dash. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value, null, 1);
}
