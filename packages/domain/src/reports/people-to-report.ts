/**
 * The people whom incoming events of a commit batch name.
 *
 * An event needs to know whose an identifier is and not how the person is, so the people whom only events name are not
 * locked (`state/held-identifiers.ts`). A report names their identifiers and attributes: they are read, without a lock,
 * and of events that a webhook may want alone.
 */
import type { IncomingSubscriptions } from '../delivery/incoming-subscription.ts';
import { identifierText, storedValue } from '../operations/state-keys.ts';
import type { Operation } from '../operations/operation.ts';
import type { LoadedState, PersonKey } from '../state/loaded-state.ts';
import { arrivalOf, trackedEvent } from './incoming-body.ts';

/** Whom to read before the operations are applied, each once, beside the people whom the loaded state has. */
export function peopleToReport(
  operations: readonly Operation[],
  subscriptions: IncomingSubscriptions,
  { identifiers, people }: Pick<LoadedState, 'identifiers' | 'people'>,
): PersonKey[] {
  const named = new Set<string>();
  for (const operation of operations) {
    if (operation.type !== 'event.track' || !subscriptions.has(operation.environmentId)) continue;
    const { environmentId, person, anonymousId } = operation;
    if (!person || person.kind === 'svc_id') continue;
    // One that gives an anonymous id: a later event under that id is this person's.
    const isWanted =
      anonymousId !== undefined ||
      subscriptions.mayBeWanted(trackedEvent(operation, undefined), arrivalOf(operation));
    if (!isWanted) continue;
    named.add(identifierText(environmentId, person.kind, storedValue(person.kind, person.value)));
  }
  if (named.size === 0) return [];
  const loaded = new Set(people.map(({ personId }) => personId));
  const keys = new Map<number, PersonKey>();
  for (const { environmentId, kind, value, personId, suppressed } of identifiers) {
    if (personId === null || suppressed || loaded.has(personId)) continue;
    if (named.has(identifierText(environmentId, kind, value)))
      keys.set(personId, { environmentId, personId });
  }
  return [...keys.values()];
}
