/** Objects: created on first sight, attributes laid over, deleted with their relationships. */
import { mergeAttributes } from '../state/merge-attributes.ts';
import { changePeopleOfObject, findObject, findOrCreateObject } from './change-relationships.ts';
import type { DeleteObject, IdentifyObject } from '../operations/operation.ts';
import type { ObjectRow } from '../state/loaded-state.ts';
import { isOlderWrite } from '../value-rules/time-rule.ts';
import { reportObject, reportObjectDeletion } from '../reports/incoming-report.ts';
import type { WorkingSet } from '../state/working-set.ts';

/** Applies an object's attributes and adds its relationships. */
export function identifyObject(set: WorkingSet, operation: IdentifyObject): void {
  const object = findOrCreateObject(set, operation, operation.object);
  if (!object) return;
  const { relationships, isHalf } = operation;
  const change = { action: 'add', entries: relationships, ...(isHalf && { isHalf }) } as const;
  const isOlder = isOlderWrite(
    operation.attributesAtMs,
    object.attributesAtMs,
    operation.receivedAtMs,
  );
  changePeopleOfObject(set, operation, changeAttributes(set, operation, object, isOlder), change);
  reportObject(set, operation, !isOlder);
}

/** Deletes an object; recorded if it is missing. */
export function deleteObject(set: WorkingSet, operation: DeleteObject): void {
  const object = findObject(set, operation, operation.object);
  if (!object) return;
  set.deleteObject(object);
  reportObjectDeletion(set, operation);
}

function changeAttributes(
  set: WorkingSet,
  operation: IdentifyObject,
  object: ObjectRow,
  isOlder: boolean,
): ObjectRow {
  const { attributesAtMs, receivedAtMs } = operation;
  if (isOlder) {
    set.addIssue(operation, {
      code: 'skipped_update',
      field: 'timestamp',
      message: `The attributes of object "${object.objectId}" are older than the stored ones and were skipped.`,
      sample: object.objectId,
    });
    return object;
  }
  const merge = mergeAttributes(object.attributes, operation.attributes);
  if (merge.refused.length > 0) {
    const [first = ''] = merge.refused;
    set.addIssue(operation, {
      code: 'too_large',
      field: 'attributes',
      message: `The object has 300 attributes, the most there can be: ${merge.refused.length} new ones were left out, the first is "${first}". Remove others first.`,
      sample: first,
    });
  }
  if (!merge.changes && attributesAtMs === undefined) return object;
  const changed: ObjectRow = {
    ...object,
    attributes: merge.attributes,
    attributesAtMs: attributesAtMs ?? object.attributesAtMs,
    updatedAtMs: merge.changes ? receivedAtMs : object.updatedAtMs,
  };
  set.setObject(changed);
  return changed;
}
