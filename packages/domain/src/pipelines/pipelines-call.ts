/** Common parts of Pipelines' calls: the people that they are about. */
import { isAbsent } from '../value-rules/verdict.ts';
import { readExactText } from '../parsing/identifiers.ts';
import { isJsonObject, type JsonObject } from '../values/json.ts';
import { ID_SIZE_BYTES_MAX } from '../operations/limits.ts';
import type { PersonIdentifier } from '../operations/operation.ts';
import type { CallDraft } from '../parsing/parse.ts';

/** Browsers send their anonymous id with every call, servers often without. */
export function readAnonymousId(draft: CallDraft, call: JsonObject): string | undefined {
  return readExactText(draft, call.anonymousId, 'anonymousId', ID_SIZE_BYTES_MAX);
}

/** A refused identifier was present: calling it missing would mislead. */
export function requireSomebody(
  draft: CallDraft,
  person: PersonIdentifier | undefined,
  anonymousId: string | undefined,
): void {
  if (person === undefined && anonymousId === undefined && !draft.isRefused) {
    draft.refuse('required', 'userId', 'userId or anonymousId is required');
  }
}

/** The anonymous person, for a call without another identifier. */
export function anonymousPerson(anonymousId: string | undefined): PersonIdentifier | undefined {
  return anonymousId === undefined ? undefined : { kind: 'anonymous_id', value: anonymousId };
}

/** Null and absent are empty. `undefined` after an issue. */
export function readOptionalObject(
  draft: CallDraft,
  value: unknown,
  field: string,
): JsonObject | undefined {
  if (isAbsent(value)) return {};
  if (isJsonObject(value)) return value;
  draft.refuse('invalid', field, `${field} must be an object`, value);
  return undefined;
}
