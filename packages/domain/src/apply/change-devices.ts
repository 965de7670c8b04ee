/** Devices of a person (`ingestion-conventions.md` §1.6). Adding one again merges its attributes. */
import { mergeAttributes } from '../state/merge-attributes.ts';
import { findOrCreatePerson, findPerson } from './find-person.ts';
import { forgetKept, isVisitor, keepDevice } from './keep-visitors.ts';
import { recordRemoval } from './visitors.ts';
import type { AddDevice, DeleteDevice } from '../operations/operation.ts';
import { deviceText, type WorkingSet } from '../state/working-set.ts';

/** Adds a device or updates it; its person is made on first sight. */
export function addDevice(set: WorkingSet, operation: AddDevice): void {
  const { environmentId, receivedAtMs, token, platform, lastUsedAtMs } = operation;
  if (isVisitor(set, environmentId, operation.person))
    return keepDevice(set, operation, operation.person.value);
  const resolution = findOrCreatePerson(set, operation, operation.person);
  if (resolution.outcome !== 'found') return;
  const { person } = resolution;
  const current = set.devices.get(deviceText(person, token));
  const merge = mergeAttributes(current?.attributes ?? {}, operation.attributes);
  set.devices.set({
    environmentId,
    personId: person.personId,
    token,
    platform,
    lastUsedAtMs: lastUsedAtMs ?? current?.lastUsedAtMs ?? null,
    attributes: merge.attributes,
    createdAtMs: current?.createdAtMs ?? receivedAtMs,
    updatedAtMs: receivedAtMs,
  });
}

/** Deletes a device. If the person has no device with that token, the call has no effect. */
export function deleteDevice(set: WorkingSet, operation: DeleteDevice): void {
  if (isVisitor(set, operation.environmentId, operation.person))
    return forgetKept(set, operation, operation.person.value, 'devices', operation.token);
  const resolution = findPerson(set, operation, operation.person);
  if (resolution.outcome !== 'found') return;
  recordRemoval(set, operation, resolution.person, 'devices', operation.token);
  const device = set.devices.get(deviceText(resolution.person, operation.token));
  if (device) set.devices.delete(device);
}
