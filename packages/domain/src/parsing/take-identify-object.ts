/** Attributes and people of an object → the identify operation. For v2 and Pipelines' group alike. */
import type { JsonObject } from '../values/json.ts';
import type {
  IdentifyObject,
  ObjectIdentifier,
  PersonRelationship,
} from '../operations/operation.ts';
import type { CallDraft } from './parse.ts';
import { readOrderingMs } from './timestamps.ts';

/** Takes the identify operation. `timestamp`, if sent, orders competing writes. */
export function takeIdentifyObject(
  draft: CallDraft,
  object: ObjectIdentifier,
  attributes: JsonObject,
  relationships: readonly PersonRelationship[],
  timestamp: unknown,
): void {
  const operation: { -readonly [Key in keyof IdentifyObject]: IdentifyObject[Key] } = {
    type: 'object.identify',
    environmentId: draft.context.environmentId,
    receivedAtMs: draft.context.receivedAtMs,
    object,
    attributes,
    relationships,
  };
  const attributesAtMs = readOrderingMs(draft, timestamp, 'timestamp');
  if (attributesAtMs !== undefined) operation.attributesAtMs = attributesAtMs;
  draft.take(operation);
}
