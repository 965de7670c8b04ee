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
    if (isGone) return withoutObject(marked, object);
    const { relationships } = marked;
    const joined = { ...relationships[object], ...attributes };
    return { ...marked, relationships: { ...relationships, [object]: joined } };
  }, profile);
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
