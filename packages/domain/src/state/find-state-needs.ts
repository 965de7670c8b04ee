/**
 * Finds the state that operations need: every identifier and object they name, at any place in them.
 *
 * Step 9 of the walk, before `database/src/people/person-identifiers.ts` and its neighbours (step 10). The apply step
 * finds only people who are named here. So one name too many costs a look-up, and one too few costs a person.
 */
import { unknownOperation } from '../values/errors.ts';
import type { Json } from '../values/json.ts';
import type { ObjectIdentifier, Operation, PersonIdentifier } from '../operations/operation.ts';
import { identifierIn } from '../operations/state-keys.ts';
import { NameGroups } from './names/name-groups.ts';
import { NeedsDraft, type StateNeeds } from './state-needs.ts';

/** Collects the names in the operations, in one pass. */
export function findStateNeeds(operations: readonly Operation[]): StateNeeds {
  const draft = new NeedsDraft();
  for (const operation of operations) {
    if (operation.isReplayed) draft.hasReplayed = true;
    collect(draft, operation);
  }
  return draft.finish(draft.releasesIdentifiers ? namesOfReleasing(operations) : new Set());
}

/**
 * Names of people that may give up identifiers or be merged. They are the names in operations that do that, and in all
 * that share a name with those, directly or by others. Among the others are people who get such a name within these
 * operations.
 */
function namesOfReleasing(operations: readonly Operation[]): ReadonlySet<string> {
  const groups = new NameGroups();
  const releasing: string[] = [];
  for (const operation of operations) {
    const draft = new NeedsDraft();
    collect(draft, operation);
    const names = draft.names();
    groups.join(names);
    if (draft.releasesIdentifiers) releasing.push(...names);
  }
  return groups.allOf(releasing);
}

function collect(draft: NeedsDraft, operation: Operation): void {
  const { environmentId } = operation;
  switch (operation.type) {
    case 'event.track':
      draft.event(operation);
      if (operation.person) draft.person(environmentId, operation.person, false);
      if (operation.anonymousId !== undefined) {
        draft.identifier(environmentId, 'anonymous_id', operation.anonymousId, false);
        if (operation.person) draft.link(environmentId, operation.person, operation.anonymousId);
      }
      return;
    case 'person.identify':
      draft.attributesOf(environmentId);
      draft.person(environmentId, operation.person, true);
      collectAttributes(draft, environmentId, operation.attributes);
      if (operation.anonymousId !== undefined)
        draft.identifier(environmentId, 'anonymous_id', operation.anonymousId, true);
      if (operation.relationships)
        collectObjects(draft, environmentId, operation.relationships.entries);
      if (operation.person.kind === 'svc_id') draft.releasesIdentifiers = true;
      if (operation.isHalf) draft.half(environmentId, operation.person);
      return;
    case 'person.relationships':
      draft.person(environmentId, operation.person, true);
      if (operation.action === 'delete') draft.attributesOf(environmentId);
      collectObjects(draft, environmentId, operation.entries);
      if (operation.isHalf) draft.half(environmentId, operation.person);
      return;
    case 'person.delete':
    case 'person.suppress':
    case 'person.unsuppress':
      draft.person(environmentId, operation.person, true);
      draft.releasesIdentifiers = true;
      return;
    case 'person.merge':
      draft.person(environmentId, operation.primary, true);
      draft.person(environmentId, operation.secondary, true);
      if (operation.isAlias && operation.secondary.kind !== 'svc_id')
        draft.identifier(environmentId, 'anonymous_id', operation.secondary.value, true);
      draft.releasesIdentifiers = true;
      draft.mergesPeople = true;
      return;
    case 'device.add':
    case 'device.delete':
      draft.person(environmentId, operation.person, true);
      if (operation.type === 'device.delete') draft.attributesOf(environmentId);
      draft.deviceTokens.push(operation.token);
      return;
    case 'object.identify':
      draft.object(environmentId, operation.object);
      collectPeople(draft, environmentId, operation.relationships);
      if (operation.isHalf)
        for (const { person } of operation.relationships) draft.half(environmentId, person);
      return;
    case 'object.relationships':
      draft.object(environmentId, operation.object);
      if (operation.action === 'delete') draft.attributesOf(environmentId);
      collectPeople(draft, environmentId, operation.entries);
      if (operation.isHalf)
        for (const { person } of operation.entries) draft.half(environmentId, person);
      for (const person of operation.named ?? []) draft.person(environmentId, person, true);
      return;
    case 'object.delete':
      draft.object(environmentId, operation.object, true);
      return;
    case 'metric.report':
      draft.event(operation);
      draft.messageDelivery(environmentId, operation.deliveryId);
      if (operation.recipient?.includes('@'))
        draft.identifier(environmentId, 'email', operation.recipient, true);
      return;
    case 'message.publish':
      draft.event(operation);
      return;
    case 'delivery.unsubscribe':
      draft.attributesOf(environmentId);
      draft.messageDelivery(environmentId, operation.deliveryId);
      return;
    case 'form.submit':
      draft.attributesOf(environmentId);
      draft.person(environmentId, operation.person, true);
      collectAttributes(draft, environmentId, operation.fields);
      return;
    case 'segment.change':
      for (const person of operation.people) draft.person(environmentId, person, true);
      return;
    case 'issue.record':
      return;
    default:
      // A newer intake beside this worker: the shard waits for a worker that knows it.
      throw unknownOperation(operation);
  }
}

function collectAttributes(
  draft: NeedsDraft,
  environmentId: number,
  attributes: Readonly<Record<string, Json>>,
): void {
  for (const kind of ['id', 'email', 'phone', 'anonymous_id'] as const) {
    const value = Object.hasOwn(attributes, kind) ? identifierIn(attributes[kind]) : undefined;
    if (value !== undefined) draft.identifier(environmentId, kind, value, true);
  }
}

function collectObjects(
  draft: NeedsDraft,
  environmentId: number,
  entries: readonly { object: ObjectIdentifier }[],
): void {
  draft.changesRelationships = true;
  for (const { object } of entries) draft.object(environmentId, object);
}

function collectPeople(
  draft: NeedsDraft,
  environmentId: number,
  entries: readonly { person: PersonIdentifier }[],
): void {
  if (entries.length > 0) draft.changesRelationships = true;
  for (const { person } of entries) draft.person(environmentId, person, true);
}
