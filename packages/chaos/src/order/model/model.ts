/**
 * Reference model: the effects of calls, applied one after another.
 *
 * Written from the specification, not from the product. `spec` is ingestion-webhooks.md, `§` are sections of
 * ingestion-conventions.md, `H` is the guarantee that the oracle checks. A rule marked "decided" is silent in all of
 * them; README.md lists the reasons.
 */
import type { Call } from './call.ts';
import {
  EMPTY_PROFILE,
  isSuppressed,
  kindOf,
  ownerOf,
  withNames,
  without,
  withPerson,
  type Name,
  type Person,
  type Profile,
  type State,
} from './model-state.ts';
import {
  deviceMark,
  isOlder,
  mark,
  newestOf,
  notRemoved,
  relate,
  relationshipsFrom,
  withoutObject,
  write,
} from './profile.ts';
import { stepsOf } from './read-calls.ts';
import { isPreference, type Step, type Subject } from './steps.ts';

/** A batch is one call: its items apply in their own order, without other calls in between (H). */
export const applyCall = (state: State, call: Call): State =>
  stepsOf(call).reduce(applyStep, state);

function applyStep(before: State, step: Step): State {
  const state = { ...before, clock: before.clock + 1 };
  switch (step.kind) {
    case 'identify':
      return identify(state, step);
    case 'learn': {
      const owner = ownerOf(state, step.name);
      return owner ? withPerson(state, owner, withNames(owner, [step.svcId])) : state;
    }
    case 'event':
      return applyEvent(state, step);
    case 'metric': {
      // The message is known from now on, with the owner of the address (§1.6).
      const owner = ownerOf(state, step.message) ? undefined : ownerOf(state, step.recipient ?? '');
      return owner ? withPerson(state, owner, withNames(owner, [step.message])) : state;
    }
    case 'unsubscribe': {
      const owner = ownerOf(state, step.message);
      if (!owner) return state;
      const values = write(owner.values, { unsubscribed: true }, state.clock);
      return withPerson(state, owner, { ...owner, values });
    }
    case 'add device':
      return change(state, step.subject, true, (profile) => {
        const known = profile.devices[step.token];
        // Attributes that the call does not name stay (decided, as for people and relationships).
        const attributes = { ...known?.attributes, ...step.attributes };
        const device = { platform: step.platform, attributes };
        const marked = mark(profile, deviceMark(step.token), state.clock, false);
        return { ...marked, devices: { ...profile.devices, [step.token]: device } };
      });
    case 'delete device':
      return change(state, step.subject, false, (profile) => ({
        ...mark(profile, deviceMark(step.token), state.clock, true),
        devices: without(profile.devices, (token) => token === step.token),
      }));
    case 'relate': {
      const mayCreate = step.relations.some(({ isGone }) => !isGone);
      return change(state, step.subject, mayCreate, (profile) =>
        relate(profile, step.relations, state.clock),
      );
    }
    case 'delete object':
      return {
        ...state,
        people: state.people.map((person) => ({
          ...person,
          ...withoutObject(person, step.object),
        })),
        visitors: Object.fromEntries(
          Object.entries(state.visitors).map(([name, each]) => [
            name,
            withoutObject(each, step.object),
          ]),
        ),
      };
    case 'merge':
      return merge(state, step.primary, step.secondary);
    case 'alias':
      return alias(state, step);
    // A later identify makes the person anew (§1.6), without their earlier data.
    case 'delete':
      return withPerson(state, ownerOf(state, step.name));
    case 'suppress':
      return suppress(state, step.name);
    case 'unsuppress': {
      // "Frees the identifiers" (§1.6): all that were suppressed together (decided).
      const group = state.suppressed[step.name];
      if (group === undefined) return state;
      return { ...state, suppressed: without(state.suppressed, (_, each) => each === group) };
    }
  }
}

/** Attributes older than the stored ones are skipped, the identifiers among them too (§1.2). */
function identify(
  state: State,
  {
    subject,
    isUpdate,
    attributes,
    relations = [],
    stamp,
    removed = [],
  }: Extract<Step, { kind: 'identify' }>,
): State {
  const written = (profile: Profile): Profile => {
    const related = relate(profile, relations, state.clock);
    if (isOlder(stamp, profile)) return related;
    const values = write(profile.values, attributes, state.clock, stamp);
    if (!('names' in profile)) return { ...related, values, stamp: newestOf(values) };
    return { ...related, values, stamp: stamp ?? profile.stamp };
  };
  return change(state, subject, !isUpdate, written, { stamp, removed });
}

/** The id of an earlier event is ignored, for any person, also if that event was ignored (spec §2 Event, §1.4). */
function applyEvent(
  state: State,
  { subject, event, id, isOfKnown = false }: Extract<Step, { kind: 'event' }>,
): State {
  if (id !== undefined && id in state.eventIds) return state;
  const next = change(state, subject, !isOfKnown, (profile) => ({
    ...profile,
    events: [...profile.events, event],
  }));
  return id === undefined ? next : { ...next, eventIds: { ...next.eventIds, [id]: true } };
}

/** Changes the subject, person or visitor. The same state comes back if the call is ignored. */
function change(
  state: State,
  { names, anonymous }: Subject,
  mayCreate: boolean,
  edit: (profile: Profile) => Profile,
  {
    stamp,
    removed = [],
  }: { readonly stamp?: number | undefined; readonly removed?: readonly string[] } = {},
): State {
  // A write that names a suppressed identifier is ignored (§1.6).
  if (names.some((name) => isSuppressed(state, name))) return state;
  if (names.length === 0)
    return anonymous ? changeVisitor(state, anonymous, mayCreate, edit) : state;
  const person = findPerson(state, names);
  const bySvcId = kindOf(names[0] as Name) === 'svc';
  if (!person && (!mayCreate || bySvcId)) return state;
  const named = giveNames(state, person ?? NOBODY, names.slice(0, 1), bySvcId);
  // The visitor's calls came before this one.
  const [joined, current] = adopt(withPerson(state, person, named), named, anonymous);
  const kept = bySvcId ? withoutKinds(current, removed) : current;
  const next = isOlder(stamp, current) ? current : giveNames(joined, kept, names, bySvcId);
  return withPerson(joined, current, { ...next, ...edit(next) });
}

function changeVisitor(
  state: State,
  name: Name,
  mayCreate: boolean,
  edit: (profile: Profile) => Profile,
): State {
  const person = ownerOf(state, name);
  if (person) return withPerson(state, person, { ...person, ...edit(person) });
  // Suppression blocks all identifiers of a person, so anonymous ids too (§1.6).
  if (isSuppressed(state, name)) return state;
  const visitor = state.visitors[name];
  if (!visitor && !mayCreate) return state;
  return { ...state, visitors: { ...state.visitors, [name]: edit(visitor ?? EMPTY_PROFILE) } };
}

/**
 * The owner of the call's identifier; else the owner of an identifier that it brings, who then receives the first one
 * (§1.2). An owner who already has another identifier of that kind would be renamed, which is refused (§1.2).
 */
function findPerson(state: State, [first, ...others]: readonly Name[]): Person | undefined {
  const owner = first && ownerOf(state, first);
  if (owner || !first || kindOf(first) === 'svc') return owner || undefined;
  return others
    .map((name) => ownerOf(state, name))
    .find((each) => each && !hasKind(each, kindOf(first)));
}

/**
 * An identifier of somebody else, and a second one of a kind, is refused; the rest of the call applies. A call by svc_id
 * replaces the one of that kind (§1.2).
 */
function giveNames(
  state: State,
  person: Person,
  names: readonly Name[],
  mayReplace: boolean,
): Person {
  let named = person;
  for (const name of names) {
    if (ownerOf(state, name) || (hasKind(named, kindOf(name)) && !mayReplace)) continue;
    named = withNames(withoutKinds(named, [kindOf(name)]), [name]);
  }
  return named;
}

const NOBODY: Person = { ...EMPTY_PROFILE, names: [] };

const withoutKinds = (person: Person, kinds: readonly string[]): Person => ({
  ...person,
  names: person.names.filter((name) => !kinds.includes(kindOf(name))),
});

const hasKind = ({ names }: Person, kind: string): boolean =>
  names.some((name) => kindOf(name) === kind);

/** A person has any number of anonymous ids and messages. */
const hasOneOfKind = (name: Name): boolean => !['anonymous', 'message'].includes(kindOf(name));

/**
 * The visitor's calls take effect (H 4; spec §3 event; §1.4). An anonymous id of somebody else is not taken (§1.3).
 *
 * @returns the state, and the person in it.
 */
function adopt(state: State, person: Person, anonymous: Name | undefined): [State, Person] {
  if (!anonymous || isSuppressed(state, anonymous) || ownerOf(state, anonymous))
    return [state, person];
  const visitor = state.visitors[anonymous] ?? EMPTY_PROFILE;
  // Never over the person's newer values (H 4), nor over a newer `_timestamp` (§1.2).
  const taken = without(
    visitor.values,
    (name, { at, stamp }) => (person.values[name]?.at ?? 0) > at || isOlder(stamp, person),
  );
  const { relationships, events } = relationshipsFrom(visitor, person);
  const next: Person = {
    ...withNames(person, [anonymous]),
    values: { ...person.values, ...taken },
    stamp: newestOf(taken, person.stamp),
    devices: { ...notRemoved(visitor.devices, deviceMark, visitor, person), ...person.devices },
    relationships,
    events: [...person.events, ...visitor.events, ...events],
  };
  const visitors = without(state.visitors, (name) => name === anonymous);
  return [withPerson({ ...state, visitors }, person, next), next];
}

/** §1.6. The primary must exist; the secondary fills the gaps of the primary, and is gone. */
function merge(state: State, primaryName: Name, secondaryName: Name): State {
  const primary = ownerOf(state, primaryName);
  const secondary = ownerOf(state, secondaryName);
  if (!primary || !secondary || primary === secondary) return state;
  const set = Object.keys(primary.values).filter((name) => primary.values[name]?.value !== null);
  // Preferences are one attribute (§1.3): the primary's stay, or the secondary's come whole.
  const isSet = (name: string): boolean =>
    isPreference(name) ? set.some(isPreference) : set.includes(name);
  // A removal by the primary stays as late as it was: a visitor's trait must not replace it (H 4).
  const filled = Object.entries(secondary.values)
    .filter(([name]) => !isSet(name))
    .map(([name, each]) => {
      const at = Math.max(each.at, primary.values[name]?.at ?? 0);
      return [name, { ...each, at }] as const;
    });
  // The secondary's svc_id loses its person (decided).
  const taken = withoutKinds(secondary, ['svc']).names.filter(
    (name) => !hasOneOfKind(name) || !hasKind(primary, kindOf(name)),
  );
  const merged: Person = {
    ...withNames(primary, taken),
    values: { ...primary.values, ...Object.fromEntries(filled) },
    // No older write replaces a value that came with the secondary (§1.2).
    stamp: newestOf({}, primary.stamp, secondary.stamp),
    // A device or relationship that both have stays as the primary has it (decided).
    devices: { ...secondary.devices, ...primary.devices },
    relationships: { ...secondary.relationships, ...primary.relationships },
    events: [...primary.events, ...secondary.events],
    marks: latestOf(primary.marks, secondary.marks),
  };
  return withPerson(withPerson(state, secondary), primary, merged);
}

const latestOf = (one: Profile['marks'], other: Profile['marks']): Profile['marks'] => ({
  ...one,
  ...without(other, (name, at) => (one[name] ?? 0) > at),
});

/** Merges a person into another (§3.1); an alias of a visitor is an identification (H 4). */
function alias(
  state: State,
  { previous, previousName, name }: Extract<Step, { kind: 'alias' }>,
): State {
  const anonymous = `anonymous:${previous}`;
  const person = ownerOf(state, previousName ?? anonymous);
  if (person && !ownerOf(state, name)) {
    const mayReplace = previousName !== undefined || !hasKind(person, kindOf(name));
    return mayReplace ? rename(state, person, name) : state;
  }
  if (person && previousName !== undefined) return merge(state, name, previousName);
  const isVisitor = anonymous in state.visitors;
  // An identifier without a visitor, or whose visitor is a person by now, cannot be joined (decided).
  if (previousName !== undefined && !isVisitor) return state;
  return change(state, { names: [name], anonymous }, isVisitor, (profile) => profile);
}

/**
 * An alias for a free id gives it to the person, in the place of the one of its kind (the clients document alias so).
 */
function rename(state: State, person: Person, name: Name): State {
  if (isSuppressed(state, name) || kindOf(name) === 'svc') return state;
  return withPerson(state, person, withNames(withoutKinds(person, [kindOf(name)]), [name]));
}

/** Deletes the person and blocks all their identifiers, or the one without a person (§1.6). */
function suppress(state: State, name: Name): State {
  if (isSuppressed(state, name)) return state;
  const person = ownerOf(state, name);
  // Such a name cannot become anybody's.
  if (!person && kindOf(name) === 'svc') return state;
  const names = person?.names.filter((each) => kindOf(each) !== 'message') ?? [name];
  const group = Object.fromEntries(names.map((each) => [each, names.join(' ')]));
  return { ...withPerson(state, person), suppressed: { ...state.suppressed, ...group } };
}
