/**
 * Steps of the reference model, and readers of a call's members. `spec` is ingestion-webhooks.md, `§` are sections of
 * ingestion-conventions.md.
 */
import type { Json, JsonObject, ModelEvent, Name } from './model-state.ts';

/** The people a step is about. Without an id or email, it is about a visitor. */
export interface Subject {
  /** The identifier that the call uses; then the identifiers that its attributes bring. */
  readonly names: readonly Name[];
  readonly anonymous?: Name | undefined;
}

/** A relationship that a call adds, or that it removes. */
export interface Relation {
  readonly object: string;
  readonly attributes: JsonObject;
  readonly isGone: boolean;
}

export type Step =
  | {
      readonly kind: 'identify';
      readonly subject: Subject;
      readonly attributes: JsonObject;
      /** `_update`: changes a person, never makes one (§1.2). */
      readonly isUpdate?: boolean;
      /** `_timestamp`: attributes older than the stored ones are skipped (§1.2). */
      readonly stamp?: number | undefined;
      /** Kinds of identifiers that the call removes (`null` or the empty text). */
      readonly removed?: readonly string[];
      readonly relations?: readonly Relation[];
    }
  | {
      readonly kind: 'event';
      readonly subject: Subject;
      readonly event: ModelEvent;
      readonly id?: string | undefined;
      /** Of a file: it makes no person (spec §2). */
      readonly isOfKnown?: boolean;
    }
  | {
      readonly kind: 'add device';
      readonly subject: Subject;
      readonly token: string;
      readonly platform: string;
      readonly attributes: JsonObject;
    }
  | { readonly kind: 'delete device'; readonly subject: Subject; readonly token: string }
  | { readonly kind: 'relate'; readonly subject: Subject; readonly relations: readonly Relation[] }
  | { readonly kind: 'delete object'; readonly object: string }
  | { readonly kind: 'merge'; readonly primary: Name; readonly secondary: Name }
  | {
      readonly kind: 'alias';
      readonly previous: string;
      /** Undefined: only a visitor can be meant. */
      readonly previousName: Name | undefined;
      readonly name: Name;
    }
  | { readonly kind: 'delete' | 'suppress' | 'unsuppress'; readonly name: Name }
  /** The service gives each person a svc_id. Calls can use it once it is known. */
  | { readonly kind: 'learn'; readonly name: Name; readonly svcId: Name }
  /** A metric of a message (§1.6). */
  | { readonly kind: 'metric'; readonly message: Name; readonly recipient: Name | undefined }
  /** The link in a message. */
  | { readonly kind: 'unsubscribe'; readonly message: Name };

/** A svc_id, an email or an id, recognised by its shape; letter case of an email does not count (spec §2, §1.2). */
export function nameOf(given: string): Name {
  // Blanks at the ends would make two people whose difference is invisible.
  const text = given.trim();
  if (/^(?:svc|cio)_/.test(text)) return `svc:${text.slice(4)}`;
  return text.includes('@') ? `email:${text.toLowerCase()}` : `id:${text}`;
}

/** A required text; numbers as their digits. */
export const wordOf = (value: Json | undefined): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

/** A text without blanks at its ends; a number counts as its digits (§1.2). */
export const textOf = (value: Json | undefined): string | undefined =>
  (typeof value === 'number' ? String(value) : typeof value === 'string' && value.trim()) ||
  undefined;
export const recordOf = (value: Json | undefined): JsonObject => (value ?? {}) as JsonObject;
export const listOf = (value: Json | undefined): readonly JsonObject[] =>
  (value ?? []) as JsonObject[];
export const anonymousOf = (value: Json | undefined): Name | undefined => {
  const text = textOf(value);
  return text === undefined ? undefined : `anonymous:${text}`;
};
export const namesOf = (...names: (Name | undefined)[]): readonly Name[] =>
  names.filter((name) => name !== undefined);

const PREFERENCES = 'svc_subscription_preferences';

/** Preferences that a call names within an object, by names with dots (§1.3). */
const leavesOf = ([name, value]: readonly [string, Json]): readonly (readonly [string, Json])[] =>
  name.startsWith(PREFERENCES) && typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, each]) => leavesOf([`${name}.${key}`, each]))
    : [[name, value]];

export const isPreference = (name: string): boolean => name.startsWith(PREFERENCES);

/** Attributes that identify are not stored as attributes (§1.3). */
function splitAttributes(sent: JsonObject) {
  const { id, email, anonymous_id, _update, _timestamp, ...attributes } = sent;
  return {
    brought: namesOf(textOf(id) && `id:${textOf(id)}`, emailOf(email)),
    removed: ['id', 'email'].filter((kind) => sent[kind] === null || sent[kind] === ''),
    anonymous: anonymousOf(anonymous_id),
    isUpdate: _update === true,
    stamp: typeof _timestamp === 'number' ? _timestamp : undefined,
    attributes: Object.fromEntries(Object.entries(attributes).flatMap(leavesOf)),
  };
}

export function identify(
  names: readonly Name[],
  anonymous: Name | undefined,
  sent: JsonObject,
  relations: readonly Relation[] = [],
): Step {
  const { brought, anonymous: ofAttributes, ...rest } = splitAttributes(sent);
  const subject = {
    names: [...new Set([...names, ...brought])],
    anonymous: anonymous ?? ofAttributes,
  };
  return { kind: 'identify', subject, ...rest, relations };
}

export const messageOf = (deliveryId: Json | undefined): Name => `message:${wordOf(deliveryId)}`;

export const emailOf = (value: Json | undefined): Name | undefined => {
  const text = textOf(value);
  return text === undefined ? undefined : `email:${text.toLowerCase()}`;
};

export const objectOf = ({ object_type_id, object_id }: JsonObject): string =>
  `${wordOf(object_type_id ?? 1)}/${wordOf(object_id)}`;

export const eventOf = (
  subject: Subject,
  type: string,
  name: Json | undefined,
  data: Json | undefined,
  id: Json | undefined,
): Extract<Step, { kind: 'event' }> => ({
  kind: 'event',
  subject,
  event: { type, name: wordOf(name).trim(), data: recordOf(data) },
  id: textOf(id),
});
