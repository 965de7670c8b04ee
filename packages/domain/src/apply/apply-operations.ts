/**
 * Applies operations to the loaded state and returns the changes. Pure.
 *
 * Step 9 of the walk, between the loading of state and the writing of the changes, both by
 * `worker/src/events/process-commit-batch.ts`. Operations apply in order, each to the state after the ones before it.
 * So applying them together gives the same rows as applying them one commit batch after the other.
 */
import { unknownOperation } from '../values/errors.ts';
import { addDevice, deleteDevice } from './change-devices.ts';
import {
  changeObjectsOfPerson,
  changeObjectsOfVisitor,
  changePeopleOfObject,
  findObject,
  findOrCreateObject,
} from './change-relationships.ts';
import { deleteObject, identifyObject } from './upsert-object.ts';
import { findOrCreatePerson, findPerson } from './find-person.ts';
import { identifyPerson } from './upsert-person.ts';
import { applyLate } from './late-calls.ts';
import { mergePeople } from './merge-people.ts';
import type {
  ChangeObjectRelationships,
  ChangePersonRelationships,
  ChangeSegment,
  Operation,
  SubmitForm,
} from '../operations/operation.ts';
import { deletePerson, suppressPerson, unsuppressPerson } from './remove-person.ts';
import { reportMetric, unsubscribeDelivery } from './report-metric.ts';
import type { LoadedState, StateChanges } from '../state/loaded-state.ts';
import { takeEventOnce, trackEvent } from './track-event.ts';
import { isVisitor } from './keep-visitors.ts';
import {
  reportObject,
  reportObjectsOfPerson,
  reportPublished,
} from '../reports/incoming-report.ts';
import { WorkingSet, type ApplyEffects } from '../state/working-set.ts';

/** Applies operations to the loaded state that holds all that `findStateNeeds` asked for. */
export function applyOperations(
  state: LoadedState,
  operations: readonly Operation[],
  effects: ApplyEffects,
): StateChanges {
  const set = new WorkingSet(state, effects);
  for (const operation of operations) {
    if (operation.isReplayed) applyLate(set, operation, (each) => apply(set, each));
    else apply(set, operation);
  }
  return set.changes();
}

function apply(set: WorkingSet, operation: Operation): void {
  switch (operation.type) {
    case 'event.track':
      return trackEvent(set, operation);
    case 'person.identify':
      identifyPerson(set, operation, operation);
      return;
    case 'person.delete':
      return deletePerson(set, operation);
    case 'person.suppress':
      return suppressPerson(set, operation);
    case 'person.unsuppress':
      return unsuppressPerson(set, operation);
    case 'person.merge':
      return mergePeople(set, operation);
    case 'person.relationships':
      return changePersonRelationships(set, operation);
    case 'device.add':
      return addDevice(set, operation);
    case 'device.delete':
      return deleteDevice(set, operation);
    case 'object.identify':
      return identifyObject(set, operation);
    case 'object.delete':
      return deleteObject(set, operation);
    case 'object.relationships':
      return changeObjectRelationships(set, operation);
    case 'metric.report':
      return reportMetric(set, operation);
    case 'message.publish':
      if (takeEventOnce(set, operation, operation.eventId)) reportPublished(set, operation);
      return;
    case 'delivery.unsubscribe':
      return unsubscribeDelivery(set, operation);
    case 'form.submit':
      return submitForm(set, operation);
    case 'segment.change':
      return changeSegment(set, operation);
    case 'issue.record':
      return set.addIssue(operation, operation.issue, operation.source, operation.count);
    default:
      // A newer intake beside this worker: the shard waits for a worker that knows it.
      throw unknownOperation(operation);
  }
}

function changePersonRelationships(set: WorkingSet, operation: ChangePersonRelationships): void {
  if (isVisitor(set, operation.environmentId, operation.person)) {
    changeObjectsOfVisitor(set, operation, operation.person, operation);
    return reportObjectsOfPerson(set, operation, undefined);
  }
  const find = operation.action === 'add' ? findOrCreatePerson : findPerson;
  const resolution = find(set, operation, operation.person);
  if (resolution.outcome !== 'found') return;
  changeObjectsOfPerson(set, operation, resolution.person, operation);
  reportObjectsOfPerson(set, operation, resolution.person);
}

function changeObjectRelationships(set: WorkingSet, operation: ChangeObjectRelationships): void {
  if (isRefusedByPerson(set, operation)) return;
  const find = operation.action === 'add' ? findOrCreateObject : findObject;
  const object = find(set, operation, operation.object);
  if (!object) return;
  changePeopleOfObject(set, operation, object, operation);
  // The person's half reports such a call.
  if (!operation.named) reportObject(set, operation);
}

/** The half of the person records the issue. */
function isRefusedByPerson(
  set: WorkingSet,
  { environmentId, named = [] }: ChangeObjectRelationships,
): boolean {
  return named.some((person) => {
    const { outcome } = set.directory.resolve(environmentId, person);
    return outcome === 'suppressed' || (outcome !== 'found' && person.kind === 'svc_id');
  });
}

/** Adds people to a manual segment or removes them; a second time it has no effect. Unknown people are skipped. */
function changeSegment(set: WorkingSet, operation: ChangeSegment): void {
  const { environmentId, segmentId, receivedAtMs } = operation;
  for (const identifier of operation.people) {
    const resolution = set.directory.resolve(environmentId, identifier);
    if (resolution.outcome !== 'found') continue;
    const member = {
      environmentId,
      segmentId,
      personId: resolution.person.personId,
      addedAtMs: receivedAtMs,
    };
    if (operation.action === 'add') set.segmentMembers.set(member);
    else set.segmentMembers.deleteUnseen(member);
  }
}

/** A form (`ingestion-conventions.md` §1.1): its fields become the person's attributes, its sending part of their history. */
function submitForm(set: WorkingSet, operation: SubmitForm): void {
  const { person: identifier, fields, formId } = operation;
  const person = identifyPerson(set, operation, {
    person: identifier,
    attributes: fields,
    mayCreate: true,
  });
  if (person) set.addActivity(person, operation, 'form', formId, fields);
}
