/**
 * The keys of everything that an operation names: people by each identifier, objects, messages, segments.
 *
 * Two operations that have no key in common can still be about one person, whom each names by another identifier. The
 * worker finds that out from the identifiers of the people (`worker/src/events/`); this file knows the operation alone.
 *
 * Before: `shard.ts`, whose key is the first of these. Pure.
 */
import { foldEmail } from '../value-rules/identifier-rule.ts';
import type {
  ObjectRelationship,
  Operation,
  PersonIdentifier,
  PersonRelationship,
} from './operation.ts';
import { identifierIn } from './state-keys.ts';
import { deliveryKey, keyHashOf, objectKey, personKey, shardKeyOf } from './shard.ts';
import type { Json } from '../values/json.ts';

const NONE: readonly string[] = [];

/** Attributes that identify a person. */
const IDENTIFYING = ['id', 'email', 'phone', 'anonymous_id'] as const;

/**
 * All keys of an operation, the one that decides its shard first; a key may occur twice. The list is empty for an
 * operation of a newer version, read from a disk by an older intake.
 */
export function keysOf(operation: Operation): string[] {
  const further = furtherKeysOf(operation);
  return further ? [shardKeyOf(operation), ...further] : [];
}

/** The keys without the one that decides its shard; undefined for an operation of a newer version. */
export function furtherKeysOf(operation: Operation): readonly string[] | undefined {
  // Most operations are such events: a list for each would be garbage.
  if (operation.type === 'event.track' && operation.anonymousId === undefined) return NONE;
  const keys: string[] = [];
  switch (operation.type) {
    case 'person.identify':
      addIdentifying(keys, operation.attributes);
      if (operation.anonymousId !== undefined) keys.push(operation.anonymousId);
      if (operation.relationships) addObjects(keys, operation.relationships.entries);
      return keys;
    case 'form.submit':
      addIdentifying(keys, operation.fields);
      return keys;
    case 'person.merge':
      keys.push(personKey(operation.secondary));
      // It can be the value of an anonymous id, whose letter case counts.
      if (operation.isAlias && operation.secondary.kind === 'email')
        keys.push(operation.secondary.value);
      return keys;
    case 'person.relationships':
      addObjects(keys, operation.entries);
      return keys;
    case 'event.track':
      if (operation.anonymousId !== undefined) keys.push(operation.anonymousId);
      return keys;
    case 'object.identify':
      addPeople(keys, operation.relationships);
      return keys;
    case 'object.relationships':
      addPeople(keys, operation.entries);
      for (const person of operation.named ?? []) keys.push(personKey(person));
      return keys;
    case 'metric.report':
      keys.push(deliveryKey(operation));
      return keys;
    case 'segment.change':
      for (const person of operation.people) keys.push(personKey(person));
      return keys;
    case 'person.delete':
    case 'person.suppress':
    case 'person.unsuppress':
    case 'device.add':
    case 'device.delete':
    case 'object.delete':
    case 'delivery.unsubscribe':
    case 'message.publish':
    case 'issue.record':
      return keys;
    default:
      return undefined;
  }
}

/**
 * The hash beside a batch's keys if the batch may write kept data of a visitor of the workspace. It marks that such a
 * write exists, and no batch waits for it.
 */
export function visitorHashOf(environmentId: number): number {
  return keyHashOf(environmentId, '\u0000visitor');
}

/**
 * The hash beside a batch's keys if the batch unsubscribes people of the workspace by messages. Such an operation names the
 * message alone, and a later one about the person names no message. It marks that there is one, as {@link visitorHashOf}.
 */
export function unsubscribeHashOf(environmentId: number): number {
  return keyHashOf(environmentId, '\u0000unsubscribe');
}

/** The mark of an operation beside its keys; undefined for most. */
export function markOf(operation: Operation): number | undefined {
  const { environmentId } = operation;
  if (operation.type === 'delivery.unsubscribe') return unsubscribeHashOf(environmentId);
  return mayWriteVisitor(operation) ? visitorHashOf(environmentId) : undefined;
}

/** True for an operation that can write kept data of a visitor without a person. */
function mayWriteVisitor(operation: Operation): boolean {
  const isVisitor = (person: PersonIdentifier): boolean => person.kind === 'anonymous_id';
  switch (operation.type) {
    case 'person.identify':
    case 'person.relationships':
    case 'device.add':
      return isVisitor(operation.person);
    case 'object.identify':
      return operation.relationships.some(({ person }) => isVisitor(person));
    case 'object.relationships':
      return operation.entries.some(({ person }) => isVisitor(person));
    default:
      return false;
  }
}

/**
 * True for an operation that has the same effect before or after any other such operation: an event that names its
 * person alone. It writes its own row, and makes its person if the name is unknown. Two unknown names are two people in
 * either order. An event with an anonymous id too identifies a visitor, which has its order.
 */
export function isOrderFree(operation: Operation): boolean {
  return operation.type === 'event.track' && operation.anonymousId === undefined;
}

function addIdentifying(keys: string[], attributes: Readonly<Record<string, Json>>): void {
  for (const kind of IDENTIFYING) {
    const value = Object.hasOwn(attributes, kind) ? identifierIn(attributes[kind]) : undefined;
    if (value !== undefined) keys.push(kind === 'email' ? foldEmail(value) : value);
  }
}

function addObjects(keys: string[], entries: readonly ObjectRelationship[]): void {
  for (const { object } of entries) keys.push(objectKey(object));
}

function addPeople(keys: string[], entries: readonly PersonRelationship[]): void {
  for (const { person } of entries) keys.push(personKey(person));
}
