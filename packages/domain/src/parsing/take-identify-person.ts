/**
 * Attributes of a person → the identify operation. For v1, v2 and Pipelines alike.
 *
 * Control keys among the attributes become members of the operation: `_update` and `_timestamp`,
 * the anonymous id (an identifier, so never an attribute too), relationships in v1's form. The svc_id
 * is the service's own and cannot be written, so a copy of it that a client sends back is left out.
 */
import { readExactText } from './identifiers.ts';
import type { JsonObject } from '../values/json.ts';
import { ID_SIZE_BYTES_MAX } from '../operations/limits.ts';
import type { IdentifyPerson, PersonIdentifier } from '../operations/operation.ts';
import { type CallDraft, fieldIn } from './parse.ts';
import { checkBoolean, readAttributes } from './read-attributes.ts';
import {
  readRelationshipChange,
  relationshipsKey,
  type RelationshipChange,
} from './relationships.ts';
import { isAbsent } from '../value-rules/verdict.ts';
import { readOrderingMs } from './timestamps.ts';

/** Keys among a person's attributes that are not attributes. */
export const PERSON_CONTROL_KEYS: ReadonlySet<string> = new Set([
  '_update',
  '_timestamp',
  'svc_relationships',
  'cio_relationships',
  'anonymous_id',
  'svc_id',
  'cio_id',
]);

/** Data of a call outside the attributes. */
export interface IdentifyExtras {
  readonly anonymousId?: string | undefined;
  /** v2's `timestamp`; `_timestamp` goes before it. */
  readonly timestamp?: unknown;
  readonly relationships?: RelationshipChange | undefined;
  /** Set if the attributes hold further keys that are not attributes. */
  readonly controlKeys?: ReadonlySet<string>;
}

/** Takes the identify operation. `field` is the path of `source` in the body, '' for the body itself. */
export function takeIdentifyPerson(
  draft: CallDraft,
  person: PersonIdentifier,
  source: JsonObject,
  field: string,
  extras: IdentifyExtras,
): void {
  const attributes = readAttributes(
    draft,
    source,
    field,
    extras.controlKeys ?? PERSON_CONTROL_KEYS,
    'person',
  );
  const operation: { -readonly [Key in keyof IdentifyPerson]: IdentifyPerson[Key] } = {
    type: 'person.identify',
    environmentId: draft.context.environmentId,
    receivedAtMs: draft.context.receivedAtMs,
    person,
    attributes,
    mayCreate: !checkBoolean(draft, source._update, fieldIn(field, '_update')),
  };
  const anonymousId =
    extras.anonymousId ??
    readExactText(draft, source.anonymous_id, fieldIn(field, 'anonymous_id'), ID_SIZE_BYTES_MAX);
  if (anonymousId !== undefined && person.kind !== 'anonymous_id')
    operation.anonymousId = anonymousId;
  const attributesAtMs = isAbsent(source._timestamp)
    ? readOrderingMs(draft, extras.timestamp, 'timestamp')
    : readOrderingMs(draft, source._timestamp, fieldIn(field, '_timestamp'));
  if (attributesAtMs !== undefined) operation.attributesAtMs = attributesAtMs;
  const relationships = readRelationships(draft, source, field, extras.relationships);
  if (relationships !== undefined) operation.relationships = relationships;
  draft.take(operation);
}

function readRelationships(
  draft: CallDraft,
  source: JsonObject,
  field: string,
  given: RelationshipChange | undefined,
): RelationshipChange | undefined {
  const key = relationshipsKey(draft, source, field);
  const keyField = fieldIn(field, key);
  const change = readRelationshipChange(draft, source[key], keyField);
  if (change === undefined || given === undefined) return change ?? given;
  draft.refuse(
    'invalid',
    keyField,
    `${keyField} names relationships that the call also names elsewhere`,
  );
  return undefined;
}
