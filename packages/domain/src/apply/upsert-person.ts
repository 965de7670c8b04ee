/**
 * Identify: the person that a call means, and the call's changes (`ingestion-conventions.md` §1.2, §1.3).
 *
 * ```
 * the call's identifier is known ───────────────▶ that person
 * unknown, the body names somebody without one ─▶ that person, who receives it
 * unknown svc_id, or `_update` ─────────────────▶ recorded, no effect
 * unknown otherwise ────────────────────────────▶ a new person
 * an identifier is suppressed ──────────────────▶ recorded, no effect
 * ```
 * If the body names a person with another identifier of the call's kind, they are two people. A new one is made and the
 * body's identifier is refused, so that the call overwrites no other person's attributes.
 */
import { noteChange } from '../state/merge-attributes.ts';
import { changeAttributes, recordWrite } from './change-attributes.ts';
import { giveIdentifier, type NamedKind } from './change-identifiers.ts';
import { changeObjectsOfPerson, changeObjectsOfVisitor } from './change-relationships.ts';
import type { JsonObject } from '../values/json.ts';
import { namedIdentifiers } from '../operations/named-identifiers.ts';
import type { IdentifyPerson, Operation } from '../operations/operation.ts';
import { createPerson, recordNotFound, recordSuppressed } from './find-person.ts';
import { keepAttributes } from './keep-visitors.ts';
import { attachAnonymousId } from './visitors.ts';
import { loaded, type LoadedPerson } from '../state/person-directory.ts';
import { identifierIn } from '../operations/state-keys.ts';
import { isOlderWrite } from '../value-rules/time-rule.ts';
import { reportIdentify } from '../reports/incoming-report.ts';
import type { WorkingSet } from '../state/working-set.ts';

/** The part of an identify with the person and the changes, for calls that identify among other things. */
export type Identification = Omit<IdentifyPerson, 'type' | 'environmentId' | 'receivedAtMs'>;

interface Target {
  readonly person: LoadedPerson;
  readonly isNew: boolean;
  readonly changes: JsonObject | undefined;
}

/** Applies an identify; undefined if it was not applied to anybody. */
export function identifyPerson(
  set: WorkingSet,
  operation: Operation,
  call: Identification,
): LoadedPerson | undefined {
  if (namesSuppressed(set, operation, call)) return undefined;
  const target = findTarget(set, operation, call);
  if (!target) return undefined;
  const { person, isNew } = target;

  // A visitor's traits before the call's own: they were sent earlier.
  let { changes } = target;
  for (const anonymousId of anonymousIdsOf(call))
    changes = attachAnonymousId(set, operation, person, anonymousId, changes);
  const isOlder = isOlderWrite(
    call.attributesAtMs,
    person.row.attributesAtMs,
    operation.receivedAtMs,
  );
  if (isOlder) {
    skipAttributes(set, operation, person, call);
  } else {
    const mayReplace = call.person.kind === 'svc_id';
    changes = changeAttributes(set, operation, person, call.attributes, mayReplace, changes);
    recordWrite(set, operation, person, call.attributes);
    if (call.attributesAtMs !== undefined)
      person.row = { ...person.row, attributesAtMs: call.attributesAtMs };
  }
  if (isNew) set.addActivity(person, operation, 'profile_create', null, changes ?? {});
  else if (changes) set.addActivity(person, operation, 'attribute_change', null, changes);

  const { relationships, isHalf } = call;
  if (relationships)
    changeObjectsOfPerson(set, operation, person, { ...relationships, ...(isHalf && { isHalf }) });
  reportIdentify(set, operation, call, person, !isOlder);
  return person;
}

function namesSuppressed(set: WorkingSet, operation: Operation, call: Identification): boolean {
  for (const identifier of namedIdentifiers(call)) {
    if (set.directory.resolve(operation.environmentId, identifier).outcome !== 'suppressed')
      continue;
    recordSuppressed(set, operation, identifier);
    return true;
  }
  return false;
}

function findTarget(
  set: WorkingSet,
  operation: Operation,
  call: Identification,
): Target | undefined {
  const { environmentId } = operation;
  const known = set.directory.resolve(environmentId, call.person);
  if (known.outcome === 'found')
    return { person: loaded(known.person), isNew: false, changes: undefined };
  if (call.person.kind === 'svc_id') {
    recordNotFound(set, operation, call.person);
    return undefined;
  }
  const { kind, value } = call.person;
  const receiver = findReceiver(set, environmentId, call, kind);
  if (receiver) {
    if (kind !== 'anonymous_id') {
      return {
        person: receiver,
        isNew: false,
        changes: giveIdentifier(set, operation, receiver, kind, value, undefined),
      };
    }
    return { person: receiver, isNew: false, changes: undefined };
  }
  const isKnown = kind === 'anonymous_id' && set.directory.isKnownVisitor(environmentId, value);
  if (!call.mayCreate && !isKnown) {
    recordNotFound(set, operation, call.person);
    return undefined;
  }
  const made = kind === 'anonymous_id' ? namedIdentifiers(call)[1] : call.person;
  if (!made) {
    keepForVisitor(set, operation, call);
    return undefined;
  }
  const madeKind = made.kind as NamedKind;
  const person = createPerson(set, operation, madeKind, made.value);
  return { person, isNew: true, changes: noteChange(undefined, madeKind, null, made.value) };
}

/** Finds a person that the body names and that has no identifier of the call's kind. */
function findReceiver(
  set: WorkingSet,
  environmentId: number,
  call: Identification,
  kind: NamedKind | 'anonymous_id',
): LoadedPerson | undefined {
  for (const identifier of namedIdentifiers(call).slice(1)) {
    const owner = set.directory.resolve(environmentId, identifier);
    if (owner.outcome !== 'found') continue;
    const person = loaded(owner.person);
    if (kind === 'anonymous_id' || person.row[kind] === null) return person;
  }
  return undefined;
}

/**
 * An anonymous id alone creates no person; an id or email in the body does. If the body names neither, the call's data
 * wait with the anonymous events for the person that is identified later.
 */
function keepForVisitor(set: WorkingSet, operation: Operation, call: Identification): void {
  const { person, attributes, attributesAtMs, relationships } = call;
  const isKept = keepAttributes(set, operation, person.value, attributes, attributesAtMs);
  if (relationships) changeObjectsOfVisitor(set, operation, person, relationships);
  reportIdentify(set, operation, call, undefined, isKept);
}

/** The anonymous ids that become the person's. */
function* anonymousIdsOf({ person, anonymousId, attributes }: Identification): Generator<string> {
  if (person.kind === 'anonymous_id') yield person.value;
  const named = anonymousId ?? identifierIn(attributes['anonymous_id']);
  if (named !== undefined) yield named;
}

function skipAttributes(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  call: Identification,
): void {
  const names = Object.keys(call.attributes);
  set.addActivity(person, operation, 'skipped_update', null, { attributes: names });
  set.addIssue(operation, {
    code: 'skipped_update',
    field: '_timestamp',
    message: 'The attributes are older than the stored ones and were skipped.',
    sample: names.join(', ').slice(0, 200),
  });
}
