/**
 * Pipelines' calls with traits: identify and group.
 *
 * A call's timestamp is the time of an event and does not order the traits, which apply in the order in which the
 * calls were taken. Client clocks differ, and one that is ahead would keep every other source from writing. Senders
 * who want such an order send `_timestamp` among the traits, as on Track.
 */
import { readEmail, readObjectId, readObjectTypeId, readPerson } from '../parsing/identifiers.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import { EMAIL_SIZE_BYTES_MAX } from '../operations/limits.ts';
import type { ObjectRelationship, PersonIdentifier } from '../operations/operation.ts';
import { VALUE_RULES } from '../value-rules/value-rules.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import { type CallDraft, fieldIn } from '../parsing/parse.ts';
import {
  anonymousPerson,
  readAnonymousId,
  readOptionalObject,
  requireSomebody,
} from './pipelines-call.ts';
import {
  joinAttributes,
  OBJECT_CONTROL_KEYS,
  readAttributes,
  readOptionalAttributes,
} from '../parsing/read-attributes.ts';
import type { RelationshipChange } from '../parsing/relationships.ts';
import { takeIdentifyObject } from '../parsing/take-identify-object.ts';
import { PERSON_CONTROL_KEYS, takeIdentifyPerson } from '../parsing/take-identify-person.ts';

/** Traits that name the object a person is related to, if `objectId` does. */
const RELATING_CONTROL_KEYS: ReadonlySet<string> = new Set([
  ...PERSON_CONTROL_KEYS,
  'objectId',
  'objectTypeId',
  'object_type_id',
  'relationship_traits',
  'relationshipAttributes',
]);

const GROUP_CONTROL_KEYS: ReadonlySet<string> = new Set([
  ...OBJECT_CONTROL_KEYS,
  'objectTypeId',
  'relationship_traits',
  'relationshipAttributes',
  'objectAttributes',
]);

/** `/v1/identify` */
export function readIdentify(draft: CallDraft, call: JsonObject): void {
  const userId = readPerson(draft, call.userId, 'userId');
  const anonymousId = readAnonymousId(draft, call);
  const given = readTraits(draft, call, isEmptyObject);
  if (given === undefined || draft.isRefused) return;
  const { traits, field } = given;
  const person = userId ?? emailOf(traits) ?? anonymousPerson(anonymousId);
  if (person === undefined) readEmail(draft, traits.email, fieldIn(field, 'email'));
  requireSomebody(draft, person, anonymousId);
  if (person === undefined) return;
  if (isAbsent(traits.objectId)) {
    takeIdentifyPerson(draft, person, traits, field, { anonymousId });
  } else {
    const relationships = readRelationship(draft, given);
    takeIdentifyPerson(draft, person, traits, field, {
      anonymousId,
      relationships,
      controlKeys: RELATING_CONTROL_KEYS,
    });
  }
}

/** `/v1/group`: an object, and the person's relationship to it. */
export function readGroup(draft: CallDraft, call: JsonObject): void {
  const userId = readPerson(draft, call.userId, 'userId');
  const anonymousId = readAnonymousId(draft, call);
  const objectId = readObjectId(draft, call.groupId, 'groupId');
  // Beside empty traits of a group, the context may have the traits of the person.
  const given = readTraits(draft, call, () => false);
  if (given === undefined || objectId === undefined) return;
  const { traits, field } = given;
  const objectTypeId = readTypeId(draft, given);
  const own = readAttributes(draft, traits, field, GROUP_CONTROL_KEYS, 'object');
  const nested = readNestedAttributes(draft, given);
  const person = userId ?? anonymousPerson(anonymousId);
  const relationships = person
    ? [{ person, attributes: readRelationshipAttributes(draft, given) }]
    : [];
  const attributes = nested === undefined ? own : joinAttributes(draft, nested, own, field);
  takeIdentifyObject(draft, { objectTypeId, objectId }, attributes, relationships, undefined);
}

interface Traits {
  readonly traits: JsonObject;
  /** Their path in the call. */
  readonly field: 'traits' | 'context.traits';
}

/**
 * The traits of an identify or group. RudderStack's format has them in the context. `undefined` after an issue.
 *
 * @param isNothing - true if traits that are an object have no content, so that the traits of the context count.
 */
function readTraits(
  draft: CallDraft,
  { traits, context }: JsonObject,
  isNothing: (traits: JsonObject) => boolean,
): Traits | undefined {
  const given = readOptionalObject(draft, traits, 'traits');
  if (given === undefined) return undefined;
  const own = { traits: given, field: 'traits' } as const;
  if (!isJsonObject(context) || isAbsent(context.traits)) return own;
  if (!isAbsent(traits) && !isNothing(given)) return own;
  const { traits: found } = context;
  if (isJsonObject(found)) return { traits: found, field: 'context.traits' };
  draft.warn(
    'value_not_understood',
    'context.traits',
    'context.traits is no object; it is left out',
    found,
  );
  return own;
}

function isEmptyObject(value: JsonObject): boolean {
  for (const _ in value) return false;
  return true;
}

/** An email among the traits identifies a person without a userId. Its other faults are reported with the traits. */
function emailOf(traits: JsonObject): PersonIdentifier | undefined {
  const verdict = VALUE_RULES.email(traits.email, EMAIL_SIZE_BYTES_MAX);
  return verdict.outcome === 'read' ? { kind: 'email', value: verdict.value } : undefined;
}

function readRelationship(draft: CallDraft, given: Traits): RelationshipChange | undefined {
  const { traits, field } = given;
  const objectId = readObjectId(draft, traits.objectId, fieldIn(field, 'objectId'));
  if (objectId === undefined) return undefined;
  const object = { objectTypeId: readTypeId(draft, given), objectId };
  const entry: ObjectRelationship = {
    object,
    attributes: readRelationshipAttributes(draft, given),
  };
  return { action: 'add', entries: [entry] };
}

/** Objects have type 1 unless the traits name another. */
function readTypeId(draft: CallDraft, { traits, field }: Traits): number {
  const key = isAbsent(traits.object_type_id) ? 'objectTypeId' : 'object_type_id';
  return readObjectTypeId(draft, traits[key], fieldIn(field, key)) ?? 1;
}

/** The spec's name for them comes before the field's. */
function readRelationshipAttributes(draft: CallDraft, { traits, field }: Traits): JsonObject {
  const key = isAbsent(traits.relationship_traits)
    ? 'relationshipAttributes'
    : 'relationship_traits';
  return readOptionalAttributes(draft, traits[key], fieldIn(field, key));
}

/** Some sources put an object's attributes one level down. */
function readNestedAttributes(draft: CallDraft, { traits, field }: Traits): JsonObject | undefined {
  const { objectAttributes } = traits;
  if (isAbsent(objectAttributes)) return undefined;
  const place = fieldIn(field, 'objectAttributes');
  if (isJsonObject(objectAttributes))
    return readAttributes(draft, objectAttributes, place, OBJECT_CONTROL_KEYS, 'object');
  draft.refuse('invalid', place, `${place} must be an object`, objectAttributes);
  return undefined;
}
