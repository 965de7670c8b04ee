/**
 * Effect of an identify on a person: identifiers, attributes, the `unsubscribed` flag, the subscription preferences,
 * and the reports for webhooks.
 *
 * `customer_unsubscribed` when the flag becomes true, `customer_subscribed` when it stops being true or a call sets it
 * to false for the first time, `customer_subscription_preferences_changed` when the stored preferences change. A call
 * that repeats the stored values causes no report.
 */
import { leavesOf, recordPlaces } from '../state/attribute-places.ts';
import {
  isRemoval,
  isSameJson,
  joinChanges,
  mergeAttributes,
  noteChange,
} from '../state/merge-attributes.ts';
import { changeIdentifier, isIdentifierOf } from './change-identifiers.ts';
import { isTrue } from '../value-rules/boolean-rule.ts';
import { setKey, type Json, type JsonObject } from '../values/json.ts';
import type { Operation } from '../operations/operation.ts';
import type { LoadedPerson } from '../state/person-directory.ts';
import { reportPreferences, reportSubscription } from '../reports/person-report.ts';
import { mergePreferences, type PreferenceChange } from '../state/subscription.ts';
import { namesPreferences, PREFERENCES_ATTRIBUTE } from '../parsing/read-preferences.ts';
import type { MessageChannel } from '../delivery/reporting-event.ts';
import type { WorkingSet } from '../state/working-set.ts';

/** Names that are not attributes: set by the service, or handled by the caller. */
const IGNORED: ReadonlySet<string> = new Set(['svc_id', 'cio_id', 'anonymous_id']);

/**
 * Applies the attributes of one call to a person.
 *
 * @param mayReplaceIdentifiers - the call came under the person's svc_id.
 * @param changes - earlier changes of the same call.
 * @returns all that the call changed, name → `{from, to}`.
 */
export function changeAttributes(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  attributes: JsonObject,
  mayReplaceIdentifiers: boolean,
  changes: JsonObject | undefined,
): JsonObject | undefined {
  const patch: JsonObject = {};
  let unsubscribed = person.row.unsubscribed;
  const preferencesBefore = preferencesOf(person);
  const preferenceChanges: PreferenceChange[] = [];
  let noted = changes;
  for (const name in attributes) {
    const value = attributes[name] as Json;
    if (isIdentifierOf(person, name))
      noted = changeIdentifier(set, operation, person, name, value, mayReplaceIdentifiers, noted);
    else if (name === 'unsubscribed') unsubscribed = isRemoval(value) ? null : isTrue(value);
    else if (namesPreferences(name)) preferenceChanges.push([name, value]);
    else if (!IGNORED.has(name)) setKey(patch, name, value);
  }
  let preferences = preferencesBefore;
  if (preferenceChanges.length > 0) {
    const merged = mergePreferences(preferencesBefore, preferenceChanges);
    preferences = merged.preferences;
    if (merged.refused.length > 0)
      refuseExcess(set, operation, person, 'subscription preferences', merged.refused);
  }
  const hasNewPreferences = !isSameJson(preferencesBefore ?? null, preferences ?? null);
  if (hasNewPreferences) patch[PREFERENCES_ATTRIBUTE] = preferences ?? null;

  const merge = mergeAttributes(person.row.attributes, patch);
  if (merge.refused.length > 0) refuseExcess(set, operation, person, 'attributes', merge.refused);
  if (merge.changes) noted = joinChanges(noted, merge.changes);
  const unsubscribedBefore = person.row.unsubscribed;
  if (unsubscribed !== unsubscribedBefore)
    noted = noteChange(noted, 'unsubscribed', unsubscribedBefore, unsubscribed);
  if (merge.changes || unsubscribed !== unsubscribedBefore) {
    person.row = {
      ...person.row,
      attributes: merge.attributes,
      unsubscribed,
      updatedAtMs: operation.receivedAtMs,
    };
  }
  reportSubscription(set, operation, person, unsubscribedBefore, 'customer');
  if (hasNewPreferences && !merge.refused.includes(PREFERENCES_ATTRIBUTE))
    reportPreferences(set, operation, person, preferences);
  return noted;
}

/** Sets the flag alone, for the person behind a message of a channel. */
export function unsubscribe(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  channel: MessageChannel | 'customer',
): void {
  recordWrite(set, operation, person, { unsubscribed: true });
  const before = person.row.unsubscribed;
  if (before === true) return;
  person.row = { ...person.row, unsubscribed: true, updatedAtMs: operation.receivedAtMs };
  set.addActivity(person, operation, 'attribute_change', null, {
    unsubscribed: { from: before, to: true },
  });
  reportSubscription(set, operation, person, before, channel);
}

/** Records when attributes were written, for visitors who may turn out to be the person. */
export function recordWrite(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  attributes: JsonObject,
): void {
  recordNames(set, operation, person, () => leavesOf(attributes).map(([name]) => name));
}

/** @param namesOf - of the written leaves or the removals; called only if they must be recorded. */
export function recordNames(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  namesOf: () => Iterable<string>,
): void {
  const newest = set.newestVisitorPlace(operation.environmentId);
  if (newest === undefined) return;
  const before = person.row.attributePlaces;
  const names = namesOf();
  const places = recordPlaces(before, names, operation.place ?? '', newest);
  if (places !== before) person.row = { ...person.row, attributePlaces: places };
}

function preferencesOf(person: LoadedPerson): Json | undefined {
  const { attributes } = person.row;
  return Object.hasOwn(attributes, PREFERENCES_ATTRIBUTE)
    ? attributes[PREFERENCES_ATTRIBUTE]
    : undefined;
}

function refuseExcess(
  set: WorkingSet,
  operation: Operation,
  person: LoadedPerson,
  what: string,
  refused: readonly string[],
): void {
  const [first = ''] = refused;
  set.addIssue(operation, {
    code: 'too_large',
    field: 'attributes',
    message: `The person has 300 ${what}, the most there can be: ${refused.length} new ones were left out, the first is "${first}". Remove others first.`,
    sample: first,
  });
  set.addActivity(person, operation, 'failed_attribute_change', first, {
    attributes: [...refused],
    reason: 'too_large',
  });
}
