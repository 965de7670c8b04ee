/**
 * Relationships between people and objects, and the objects that they make. A call may come from either side.
 *
 * Adding makes the missing side: the object, and a person named by id, email or phone. An object named by its svc
 * object id, and a person named by svc_id or anonymous id, must exist. Adding again merges the attributes.
 */
import { mergeAttributes } from '../state/merge-attributes.ts';
import { findOrCreatePerson, findPerson } from './find-person.ts';
import { forgetKept, isVisitor, keepRelationship } from './keep-visitors.ts';
import { recordRemoval } from './visitors.ts';
import type { JsonObject } from '../values/json.ts';
import type {
  ChangeObjectRelationships,
  ObjectIdentifier,
  ObjectRelationship,
  Operation,
  PersonIdentifier,
  PersonRelationship,
} from '../operations/operation.ts';
import type { PersonState } from '../state/person-directory.ts';
import type { ObjectRow } from '../state/loaded-state.ts';
import { canBeMade, canBeMadeObject } from '../operations/can-be-made.ts';
import { relationshipText, type WorkingSet } from '../state/working-set.ts';

/**
 * A change of relationships. With `isHalf` a second operation for the other side makes that side, or records that it is
 * missing. If a side cannot be made, the half whose call is about that side records it.
 */
interface Change<Entry> {
  readonly action: 'add' | 'delete';
  readonly entries: readonly Entry[];
  readonly isHalf?: true;
}

/** Adds or deletes relationships of one person. */
export function changeObjectsOfPerson(
  set: WorkingSet,
  operation: Operation,
  person: PersonState,
  { action, entries, isHalf }: Change<ObjectRelationship>,
): void {
  const find = action === 'add' ? findOrCreateObject : findObject;
  for (const entry of entries) {
    const isOthers =
      isHalf && (operation.type === 'person.relationships' || canBeMadeObject(entry.object));
    const object = isOthers
      ? set.findObject(operation.environmentId, entry.object)
      : find(set, operation, entry.object);
    if (object) changeRelationship(set, operation, action, person, object, entry.attributes);
  }
}

/** Adds or deletes relationships of one object. */
export function changePeopleOfObject(
  set: WorkingSet,
  operation: Operation,
  object: ObjectRow,
  {
    action,
    entries,
    isHalf,
    named,
  }: Change<PersonRelationship> & Pick<ChangeObjectRelationships, 'named'>,
): void {
  const find = action === 'add' ? findOrCreatePerson : findPerson;
  for (const entry of entries) {
    if (isVisitor(set, operation.environmentId, entry.person)) {
      changeRelationshipOfVisitor(set, operation, action, entry, object);
      continue;
    }
    const resolution =
      isHalf && (named || canBeMade(entry.person))
        ? set.directory.resolve(operation.environmentId, entry.person)
        : find(set, operation, entry.person);
    if (resolution.outcome === 'found')
      changeRelationship(set, operation, action, resolution.person, object, entry.attributes);
  }
}

/** Adds or deletes relationships of a visitor, whose anonymous id has no owner. */
export function changeObjectsOfVisitor(
  set: WorkingSet,
  operation: Operation,
  person: PersonIdentifier,
  { action, entries }: Change<ObjectRelationship>,
): void {
  const find = action === 'add' ? findOrCreateObject : findObject;
  for (const entry of entries) {
    const object = find(set, operation, entry.object);
    if (object) changeRelationshipOfVisitor(set, operation, action, { ...entry, person }, object);
  }
}

function changeRelationshipOfVisitor(
  set: WorkingSet,
  operation: Operation,
  action: 'add' | 'delete',
  { person, attributes }: PersonRelationship,
  object: ObjectRow,
): void {
  if (action === 'add') keepRelationship(set, operation, person.value, object, attributes);
  else forgetKept(set, operation, person.value, 'relationships', String(object.objectNumber));
}

/** The object, made if it is missing; undefined, and recorded, if no object has the svc object id. */
export function findOrCreateObject(
  set: WorkingSet,
  operation: Operation,
  identifier: ObjectIdentifier,
): ObjectRow | undefined {
  const { environmentId, receivedAtMs } = operation;
  if ('svcObjectId' in identifier) return findObject(set, operation, identifier);
  const known = set.findObject(environmentId, identifier);
  if (known) return known;
  const created: ObjectRow = {
    environmentId,
    objectNumber: set.effects.newObjectNumber(),
    objectTypeId: identifier.objectTypeId,
    objectId: identifier.objectId,
    attributes: {},
    attributesAtMs: null,
    createdAtMs: receivedAtMs,
    updatedAtMs: receivedAtMs,
  };
  set.setObject(created);
  return created;
}

/** The object; undefined, and recorded, if it is missing. */
export function findObject(
  set: WorkingSet,
  operation: Operation,
  identifier: ObjectIdentifier,
): ObjectRow | undefined {
  const object = set.findObject(operation.environmentId, identifier);
  if (!object) recordNotFound(set, operation, identifier);
  return object;
}

function recordNotFound(set: WorkingSet, operation: Operation, identifier: ObjectIdentifier): void {
  const isSvcId = 'svcObjectId' in identifier;
  const name = isSvcId
    ? `svc_object_id "${identifier.svcObjectId}"`
    : `object_id "${identifier.objectId}" of type ${identifier.objectTypeId}`;
  set.addIssue(operation, {
    code: 'object_not_found',
    field: isSvcId ? 'svc_object_id' : 'object_id',
    message: `No object has the ${name}, so the call has no effect. Check the id, or identify the object first.`,
    sample: isSvcId ? identifier.svcObjectId : identifier.objectId,
  });
}

function changeRelationship(
  set: WorkingSet,
  operation: Operation,
  action: 'add' | 'delete',
  person: PersonState,
  object: ObjectRow,
  attributes: JsonObject,
): void {
  const { environmentId, receivedAtMs } = operation;
  const { personId } = person;
  const { objectNumber } = object;
  const current = set.relationships.get(relationshipText({ personId, objectNumber }));
  if (action === 'delete') {
    recordRemoval(set, operation, person, 'relationships', String(objectNumber));
    if (!current) return;
    set.relationships.delete(current);
    set.addRelationshipActivity(
      person,
      operation,
      'delete_relationship',
      object,
      current.attributes,
    );
    return;
  }
  const merge = mergeAttributes(current?.attributes ?? {}, attributes);
  if (merge.refused.length > 0) refuseExcess(set, operation, merge.refused);
  if (current && !merge.changes) return;
  const createdAtMs = current?.createdAtMs ?? receivedAtMs;
  const times = { createdAtMs, updatedAtMs: receivedAtMs };
  set.relationships.set({
    environmentId,
    personId,
    objectNumber,
    attributes: merge.attributes,
    ...times,
  });
  if (!current)
    set.addRelationshipActivity(person, operation, 'add_relationship', object, merge.attributes);
}

function refuseExcess(set: WorkingSet, operation: Operation, refused: readonly string[]): void {
  const [first = ''] = refused;
  set.addIssue(operation, {
    code: 'too_large',
    field: 'relationship_attributes',
    message: `The relationship has 300 attributes, the most there can be: ${refused.length} new ones were left out, the first is "${first}". Remove others first.`,
    sample: first,
  });
}
