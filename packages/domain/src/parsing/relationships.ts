/**
 * Relationship entries: objects as seen from a person, people as seen from an object.
 *
 * v1 sends an object with an action, v2 an array, under `svc_relationships` (alias `cio_relationships`). One bad entry
 * refuses the call: a client never means to send half of a list.
 */
import { readOptionalAttributes } from './read-attributes.ts';
import { readObjectIdentifiers, readPersonIdentifiers } from './identifiers.ts';
import { isJsonObject, parsedText, type JsonObject } from '../values/json.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import type { ObjectRelationship, PersonRelationship } from '../operations/operation.ts';
import { type CallDraft, fieldIn } from './parse.ts';

/** A change of the relationships of one person. */
export interface RelationshipChange {
  readonly action: 'add' | 'delete';
  readonly entries: readonly ObjectRelationship[];
}

/** The spelling that `source` uses; ours, if it has neither or both. `field` is the path of `source` in the body. */
export function relationshipsKey(
  draft: CallDraft,
  source: JsonObject,
  field: string,
): 'svc_relationships' | 'cio_relationships' {
  const { svc_relationships: ours, cio_relationships: theirs } = source;
  if (isAbsent(ours) && !isAbsent(theirs)) return 'cio_relationships';
  if (!isAbsent(theirs)) {
    const path = fieldIn(field, 'cio_relationships');
    const problem = `${path} is left out, for ${fieldIn(field, 'svc_relationships')} is there too`;
    draft.warn('value_not_understood', path, problem, theirs);
  }
  return 'svc_relationships';
}

/** The v1 form, `{action, relationships}`. `undefined` if it is absent, and after an issue. */
export function readRelationshipChange(
  draft: CallDraft,
  given: unknown,
  field: string,
): RelationshipChange | undefined {
  if (isAbsent(given)) return undefined;
  const value = parsedText(given);
  if (!isJsonObject(value)) {
    draft.refuse(
      'invalid',
      field,
      `${field} must be an object with action and relationships`,
      value,
    );
    return undefined;
  }
  const action = readAction(draft, value.action, fieldIn(field, 'action'));
  const entries = readObjectRelationships(
    draft,
    value.relationships,
    fieldIn(field, 'relationships'),
  );
  return action === undefined || entries === undefined || entries.length === 0
    ? undefined
    : { action, entries };
}

/** A list of objects that a person is related to. Absent is empty; `undefined` after an issue. */
export function readObjectRelationships(
  draft: CallDraft,
  value: unknown,
  field: string,
): ObjectRelationship[] | undefined {
  return readEntries(draft, value, field, (entry, entryField) => {
    const object = readObjectIdentifiers(
      draft,
      entry.identifiers,
      fieldIn(entryField, 'identifiers'),
    );
    const attributes = readEntryAttributes(draft, entry, entryField);
    return object && { object, attributes };
  });
}

/** A list of people that an object is related to. Absent is empty; `undefined` after an issue. */
export function readPersonRelationships(
  draft: CallDraft,
  value: unknown,
  field: string,
): PersonRelationship[] | undefined {
  return readEntries(draft, value, field, (entry, entryField) => {
    const identifiersField = fieldIn(entryField, 'identifiers');
    const person = readPersonIdentifiers(draft, entry.identifiers, identifiersField, {
      mayBePhone: true,
      mayBeAnonymous: true,
    });
    const attributes = readEntryAttributes(draft, entry, entryField);
    return person && { person, attributes };
  });
}

function readEntries<Entry>(
  draft: CallDraft,
  given: unknown,
  field: string,
  readEntry: (entry: JsonObject, entryField: string) => Entry | undefined,
): Entry[] | undefined {
  if (isAbsent(given)) return [];
  const value = parsedText(given);
  if (!Array.isArray(value)) {
    draft.refuse('invalid', field, `${field} must be an array`, value);
    return undefined;
  }
  const entries: Entry[] = [];
  for (let index = 0; index < value.length; index++) {
    const entry: unknown = value[index];
    const entryField = fieldIn(field, index);
    if (isJsonObject(entry)) {
      const read = readEntry(entry, entryField);
      if (read !== undefined) entries.push(read);
    } else {
      draft.refuse(
        'invalid',
        entryField,
        `${entryField} must be an object with identifiers`,
        entry,
      );
    }
  }
  return draft.isRefused ? undefined : entries;
}

function readEntryAttributes(draft: CallDraft, entry: JsonObject, entryField: string): JsonObject {
  return readOptionalAttributes(
    draft,
    entry.relationship_attributes,
    fieldIn(entryField, 'relationship_attributes'),
  );
}

function readAction(draft: CallDraft, value: unknown, field: string): 'add' | 'delete' | undefined {
  if (value === 'add_relationships') return 'add';
  if (value === 'delete_relationships') return 'delete';
  if (isAbsent(value)) draft.refuse('required', field, `${field} is required`);
  else
    draft.refuse(
      'invalid',
      field,
      `${field} must be add_relationships or delete_relationships`,
      value,
    );
  return undefined;
}
