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
export function relate(profile: Profile, relations: readonly Relation[]): Profile {
  return relations.reduce((changed, { object, attributes, isGone }) => {
    if (isGone) return withoutObject(changed, object);
    const { relationships } = changed;
    const joined = { ...relationships[object], ...attributes };
    return { ...changed, relationships: { ...relationships, [object]: joined } };
  }, profile);
}

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
