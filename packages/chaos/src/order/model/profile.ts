/**
 * Changes of a profile in the reference model: values, relationships, `_timestamp`. `§` are sections of
 * ingestion-conventions.md.
 */
import { without, type JsonObject, type Profile } from './model-state.ts';
import type { Relation } from './steps.ts';

/** `null` and the empty text remove an attribute (§1.2). */
export function write(
  values: Profile['values'],
  attributes: JsonObject,
  at: number,
  stamp?: number,
): Profile['values'] {
  const written = Object.entries(attributes).map(([name, sent]) => {
    const value = name === 'unsubscribed' ? isUnsubscribed(sent) : sent;
    return [name, { value: value === '' ? null : value, at, stamp }] as const;
  });
  return { ...values, ...Object.fromEntries(written) };
}

/** §1.3: these values unsubscribe, any other value subscribes. */
const isUnsubscribed = (value: JsonObject[string]): boolean =>
  value === true ||
  value === 1 ||
  value === '1' ||
  (typeof value === 'string' && value.toLowerCase() === 'true');

/** A relationship that is added again keeps attributes that the call does not name (decided). */
export function relate(profile: Profile, relations: readonly Relation[], at: number): Profile {
  return relations.reduce((changed, { object, attributes, isGone }) => {
    const marked = mark(changed, relationshipMark(object), at, isGone);
    const { relationships } = marked;
    const known = relationships[object];
    if (isGone) {
      const left = withoutObject(marked, object);
      return known ? note(left, 'delete_relationship', object, known) : left;
    }
    const joined = { ...known, ...attributes };
    const related = { ...marked, relationships: { ...relationships, [object]: joined } };
    return known ? related : note(related, 'add_relationship', object, joined);
  }, profile);
}

/** The history has changes that took effect (H 4). A visitor’s take effect at the identification. */
const note = (profile: Profile, type: string, name: string, data: JsonObject): Profile =>
  'names' in profile ? { ...profile, events: [...profile.events, { type, name, data }] } : profile;

/** The visitor's relationships that the person has not, and has not removed later, begin now. */
export function relationshipsFrom(
  visitor: Profile,
  person: Profile,
): Pick<Profile, 'relationships' | 'events'> {
  const kept = notRemoved(visitor.relationships, relationshipMark, visitor, person);
  const begun = without(kept, (object) => object in person.relationships);
  return {
    relationships: { ...begun, ...person.relationships },
    events: Object.entries(begun).map(([name, data]) => ({ type: 'add_relationship', name, data })),
  };
}

export const relationshipMark = (object: string): string => `relationship ${object}`;
export const deviceMark = (token: string): string => `device ${token}`;

/** Notes when a visitor added the thing, or when a person removed it. */
export const mark = (profile: Profile, name: string, at: number, isGone: boolean): Profile =>
  'names' in profile === isGone ? { ...profile, marks: { ...profile.marks, [name]: at } } : profile;

/** The visitor's things, except a thing that the person removed later (H 3). */
export const notRemoved = <Value>(
  things: Readonly<Record<string, Value>>,
  markOf: (name: string) => string,
  visitor: Profile,
  person: Profile,
): Readonly<Record<string, Value>> =>
  without(things, (name) => (person.marks[markOf(name)] ?? 0) > (visitor.marks[markOf(name)] ?? 0));

export const withoutObject = <Kept extends Profile>(profile: Kept, object: string): Kept => ({
  ...profile,
  relationships: without(profile.relationships, (each) => each === object),
});

export const isOlder = (stamp: number | undefined, { stamp: stored }: Profile): boolean =>
  stamp !== undefined && stored !== undefined && stamp < stored;

/** An attribute of a visitor is kept with its `_timestamp`, so the newest of them counts (decided). */
export function newestOf(values: Profile['values'], ...others: (number | undefined)[]) {
  const stamps = [...Object.values(values).map(({ stamp }) => stamp), ...others];
  const known = stamps.filter((stamp) => stamp !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
