/** People and objects that a relationship makes (`ingestion-conventions.md` §1.6). Pure. */
import type { ObjectIdentifier, PersonIdentifier } from './operation.ts';

/** True if a relationship makes the person it names. Other people must exist, so no person is made twice. */
export function canBeMade({ kind }: PersonIdentifier): boolean {
  return kind !== 'svc_id' && kind !== 'anonymous_id';
}

/** As {@link canBeMade}, for an object. */
export function canBeMadeObject(object: ObjectIdentifier): boolean {
  return 'objectId' in object;
}
