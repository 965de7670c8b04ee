/**
 * Stored form of identifiers, and keys of the loaded state (`loaded-state.ts`). Each key is one text, by which maps
 * find it.
 */
import { foldEmail } from '../value-rules/identifier-rule.ts';
import type { Json } from '../values/json.ts';

/** The identifiers that are stored as such; a svc_id is the person's number written differently. */
export type StoredIdentifierKind = 'id' | 'email' | 'phone' | 'anonymous_id';

/** The one text for an identifier, for maps. */
export function identifierText(
  environmentId: number,
  kind: StoredIdentifierKind,
  value: string,
): string {
  return `${environmentId} ${kind} ${value}`;
}

/** The one text for an object's name, for maps. */
export function objectText(environmentId: number, objectTypeId: number, objectId: string): string {
  return `${environmentId} ${objectTypeId} ${objectId}`;
}

/** The one text for an event's id, for maps. */
export function eventText(environmentId: number, eventId: string): string {
  return `${environmentId} ${eventId}`;
}

/** How an identifier is stored and compared. */
export function storedValue(kind: StoredIdentifierKind, value: string): string {
  return kind === 'email' ? foldEmail(value) : value;
}

/** An identifier inside attributes: a text, or the digits of a number. Undefined for any other value and for ''. */
export function identifierIn(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  return typeof value === 'number' ? String(value) : undefined;
}
