/** State of one workspace in the reference model. States are immutable and compared by `keyOf`. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [name: string]: Json };

/** `id:…`, `email:…` (lower case), `phone:…`, `svc:…`, `anonymous:…`, or `message:…` of a message that the person got. */
export type Name = string;

/** `at` is the place in the order of calls; a value that a call removed is `null`. */
interface Written {
  readonly value: Json;
  readonly at: number;
  /** The `_timestamp` of the call. */
  readonly stamp?: number | undefined;
}

/** An entry of a person's history: an event, or the beginning or end of a relationship. */
export interface ModelEvent {
  readonly type: string;
  /** Of an event; else the object. */
  readonly name: string;
  readonly data: JsonObject;
}

interface Device {
  readonly platform: string;
  readonly attributes: JsonObject;
}

/** Data of a person, or of a visitor until somebody identifies with its anonymous id. */
export interface Profile {
  readonly values: Readonly<Record<string, Written>>;
  readonly devices: Readonly<Record<string, Device>>;
  /** Object → attributes of the relationship. */
  readonly relationships: Readonly<Record<string, JsonObject>>;
  readonly events: readonly ModelEvent[];
  /**
   * Name of a relationship or device → a place in the order of calls. For a visitor: when it was added. For a person: when
   * it was removed.
   */
  readonly marks: Readonly<Record<string, number>>;
  /** The newest `_timestamp` of the attributes; for a visitor, of the kept ones. */
  readonly stamp?: number | undefined;
}

export interface Person extends Profile {
  /** Sorted. At most one id, one email, one phone and one svc_id; any number of anonymous ids and messages. */
  readonly names: readonly Name[];
}

export interface State {
  readonly people: readonly Person[];
  /** By anonymous id. */
  readonly visitors: Readonly<Record<Name, Profile>>;
  /** Name → the names that one call suppressed together. */
  readonly suppressed: Readonly<Record<Name, string>>;
  readonly eventIds: Readonly<Record<string, true>>;
  /** Number of steps applied. */
  readonly clock: number;
}

export const EMPTY_PROFILE: Profile = {
  values: {},
  devices: {},
  relationships: {},
  events: [],
  marks: {},
};
export const EMPTY_STATE: State = {
  people: [],
  visitors: {},
  suppressed: {},
  eventIds: {},
  clock: 0,
};

/** An event has a name of its own; entries about one object differ by their attributes alone. */
export const isRelation = ({ type }: Pick<ModelEvent, 'type'>): boolean =>
  type === 'add_relationship' || type === 'delete_relationship';

export const kindOf = (name: Name): string => name.slice(0, name.indexOf(':'));

export const ownerOf = ({ people }: State, name: Name): Person | undefined =>
  people.find(({ names }) => names.includes(name));

export const isSuppressed = ({ suppressed }: State, name: Name): boolean => name in suppressed;

/**
 * All names that steps about `names` can read or change: the names of the same people, and the ones suppressed
 * together.
 */
export function reachOf(state: State, names: readonly Name[]): readonly Name[] {
  return names.flatMap((name) => [
    name,
    ...(ownerOf(state, name)?.names ?? []),
    ...(state.suppressed[name]?.split(' ') ?? []),
  ]);
}

/** Puts `next` in the place of `person`; without `person`, adds it; without `next`, removes `person`. */
export function withPerson(state: State, person: Person | undefined, next?: Person): State {
  const others = person ? state.people.filter((each) => each !== person) : state.people;
  return { ...state, people: next ? [...others, next] : others };
}

export function without<Value>(
  record: Readonly<Record<string, Value>>,
  isGone: (name: string, value: Value) => boolean,
): Readonly<Record<string, Value>> {
  return Object.fromEntries(Object.entries(record).filter(([name, value]) => !isGone(name, value)));
}

export function withNames(person: Person, names: readonly Name[]): Person {
  return { ...person, names: [...new Set([...person.names, ...names])].toSorted() };
}

/**
 * Makes a function from states to keys. Two states with the same key answer all reads and all later calls alike. Order
 * of application shows in `at` and in the marks alone. They matter only against a visitor's value or mark of the same name.
 *
 * A key has a number for each text: most people are the same in most states, and keys are compared often.
 */
export function createKeyOf(): (state: State) => string {
  const numbers = new Map<string, number>();
  const known = new WeakMap<object, number>();
  const numberOf = (part: object, write: () => unknown): number => {
    let number = known.get(part);
    if (number === undefined) {
      const text = JSON.stringify(write());
      number = numbers.get(text) ?? numbers.size;
      numbers.set(text, number);
      known.set(part, number);
    }
    return number;
  };
  const profileNumber = (profile: Profile & Partial<Pick<Person, 'names'>>): number =>
    numberOf(profile, () => [
      profile.names,
      profile.stamp,
      sortedEntries(profile.values)
        // A person's removed value differs from one never set only by its place.
        .filter(([, { value }]) => value !== null || !profile.names)
        .map(([name, { value, stamp }]) => [name, value, profile.names ? undefined : stamp]),
      sortedEntries(profile.devices),
      sortedEntries(profile.relationships),
      // The order of events is compared by itself.
      profile.events
        .map(
          (event) =>
            `${event.type} ${event.name}${isRelation(event) ? JSON.stringify(event.data) : ''}`,
        )
        .toSorted(),
    ]);
  return ({ people, visitors, suppressed, eventIds }) => {
    const placesOf = ({ values, marks }: Profile): (readonly [string, number])[] => [
      ...sortedEntries(values).map(([name, { at }]) => [name, at] as const),
      ...sortedEntries(marks),
    ];
    const kept = Object.values(visitors).flatMap(placesOf);
    const newerThan = (profile: Profile): string => {
      if (kept.length === 0) return '';
      return placesOf(profile)
        .map(([name, at]) => {
          const count = kept.filter(([other, each]) => other === name && each < at).length;
          return count === 0 ? '' : `${name}>${count}`;
        })
        .join('');
    };
    return [
      ...people.map((person) => profileNumber(person) + newerThan(person)).toSorted(),
      ...sortedEntries(visitors).map(
        ([name, each]) => `${name}=${profileNumber(each)}${newerThan(each)}`,
      ),
      numberOf(suppressed, () => sortedEntries(suppressed)),
      numberOf(eventIds, () => Object.keys(eventIds).toSorted()),
    ].join('|');
  };
}

const sortedEntries = <Value>(record: Readonly<Record<string, Value>>): [string, Value][] =>
  Object.entries(record).toSorted(([one], [other]) => (one < other ? -1 : 1));
