/**
 * Audit log fields of a change, from the states before and after. Also the text that is hashed.
 *
 * Invariant: replaying the changes of an object's entries in order, from an empty state, gives its present state,
 * except for secrets. So a creation lists every field that is not null, a deletion every field that was not null, and
 * an update the fields that differ, each whole.
 *
 * After: `database/src/changes/record-change.ts`, which links the entries into a chain.
 */
import {
  AUDIT_OBJECTS,
  type AuditAction,
  type AuditObjectType,
  type AuditState,
} from './audit-registry.ts';
import { AppError } from '../values/errors.ts';
import { canonicalJson, isJsonObject, setKey, type Json, type JsonObject } from '../values/json.ts';
import { toStorableText } from '../values/storable-text.ts';

/** One field; null before a creation and after a deletion. */
export interface AttributeChange {
  readonly attribute: string;
  readonly from: Json;
  readonly to: Json;
  /** The values are not kept: it is a secret. */
  readonly redacted: boolean;
}

/** Replaces the value of a secret, before and after the change. */
export const REDACTED = '[redacted]';

/** The kind of change: `before` is null at a creation, `after` is null at a deletion. */
export function auditAction(before: unknown, after: unknown): AuditAction {
  if (before === null) return 'created';
  return after === null ? 'deleted' : 'updated';
}

/**
 * The fields that differ, in the registry's order. Dates are written as RFC 3339. Characters that Postgres cannot store
 * are replaced.
 *
 * @throws AppError BUG on a field that the registry does not have.
 */
export function diffAttributes<Type extends AuditObjectType>(
  objectType: Type,
  before: AuditState<Type> | null,
  after: AuditState<Type> | null,
): AttributeChange[] {
  const fields: Readonly<Record<string, string>> = AUDIT_OBJECTS[objectType].fields;
  for (const name of [...Object.keys(before ?? {}), ...Object.keys(after ?? {})]) {
    if (!Object.hasOwn(fields, name))
      throw new AppError('BUG', `the audit registry has no field ${objectType}.${name}`);
  }
  return Object.entries(fields).flatMap(([attribute, kind]) => {
    const from = toJson((before as Record<string, unknown> | null)?.[attribute]);
    const to = toJson((after as Record<string, unknown> | null)?.[attribute]);
    if (canonicalJson(from) === canonicalJson(to)) return [];
    const redacted = kind === 'secret';
    const shown = (value: Json): Json => (redacted && value !== null ? REDACTED : value);
    return [{ attribute, from: shown(from), to: shown(to), redacted }];
  });
}

/** As it comes back from `jsonb`. */
function toJson(value: unknown): Json {
  return toStorable(JSON.parse(JSON.stringify(value ?? null)) as Json);
}

function toStorable(value: Json): Json {
  if (typeof value === 'string') return toStorableText(value);
  if (Array.isArray(value)) return value.map(toStorable);
  if (!isJsonObject(value)) return value;
  const storable: JsonObject = {};
  for (const [key, part] of Object.entries(value))
    setKey(storable, toStorableText(key), toStorable(part));
  return storable;
}

/** An entry as it is hashed: all that is kept of it. */
export interface HashedAuditEntry {
  readonly accountId: number;
  readonly auditLogId: number;
  readonly occurredAtMs: number;
  readonly action: AuditAction;
  readonly objectType: string;
  readonly objectId: string;
  readonly objectName: string | null;
  readonly environmentId: number | null;
  readonly actorType: AuditActorType;
  readonly userId: number | null;
  readonly serviceAccountId: number | null;
  readonly credentialId: number | null;
  readonly ipAddr: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
  readonly runId: string | null;
  readonly changes: readonly AttributeChange[];
  /** The session of the console; absent outside of one, so the hashes of older entries stay. */
  readonly sessionId?: number;
  /** The link by which a customer's engineer acted; absent for all other actors, whose hashes have no word of it. */
  readonly portal?: PortalActor;
}

/** @property label - as the maker of the link called who it is for. */
export interface PortalActor {
  readonly linkId: string;
  readonly label: string;
}

export const AUDIT_ACTOR_TYPES = ['user', 'service_account', 'portal', 'system'] as const;
export type AuditActorType = (typeof AUDIT_ACTOR_TYPES)[number];

/**
 * The text whose SHA-256 is the entry's hash. It holds the hash of the entry before, so that no entry
 * can be altered, removed, moved or put in without every later hash being another.
 *
 * @param previousHash lower-case hexadecimal; 64 zeros for an account's first entry.
 */
export function auditHashText(entry: HashedAuditEntry, previousHash: string): string {
  return canonicalJson({ ...entry, version: 1, previousHash } as unknown as Json);
}
