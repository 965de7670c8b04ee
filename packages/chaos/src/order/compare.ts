/**
 * Differences between the API's answers and the possible states, in words.
 *
 * Each difference has a kind, so that a summary can count them.
 */
import type { AnsweredCall } from './model/call.ts';
import {
  isRelation,
  kindOf,
  type Json,
  type JsonObject,
  type ModelEvent,
  type Person,
  type State,
} from './model/model-state.ts';

/** A person as the API returns it. */
export interface FoundPerson {
  readonly id: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  /** The svc_id without its prefix; `null` if no call can name it. */
  readonly svc: string | null;
  /** As text, without identifiers and `unsubscribed`. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly unsubscribed: boolean;
  readonly devices: Readonly<Record<string, { platform: string; attributes: JsonObject }>>;
  readonly relationships: Readonly<Record<string, JsonObject>>;
  /** Events, pages and screens, oldest first. */
  readonly events: readonly ModelEvent[];
  /** Entries about relationships, in any order. */
  readonly relations: readonly ModelEvent[];
  /** Changes of attributes in the activity log; `undefined` if a merge or a visitor's events are in the log too. */
  readonly changes: readonly Readonly<Record<string, { from: Json; to: Json }>>[] | undefined;
}

export interface Difference {
  readonly kind: string;
  readonly words: string;
}

/** @returns differences from the nearest state; empty if the reading is one of the states. */
export function findDifferences(
  states: readonly State[],
  found: readonly FoundPerson[],
  history: readonly AnsweredCall[],
): readonly Difference[] {
  let nearest: readonly Difference[] | undefined;
  for (const state of states) {
    const differences = compareState(state, found);
    if (!nearest || differences.length < nearest.length) nearest = differences;
    if (nearest.length === 0) break;
  }
  return [...(nearest ?? []), ...compareOrder(found, history), ...found.flatMap(compareChanges)];
}

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value, sortKeys);
const sortKeys = (_: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value;

const KINDS = ['id', 'email', 'phone', 'svc'] as const;

function nameFor(person: Person, kind: (typeof KINDS)[number]): string | null {
  return person.names.find((name) => kindOf(name) === kind)?.slice(kind.length + 1) ?? null;
}

function compareState({ people }: State, found: readonly FoundPerson[]): readonly Difference[] {
  const expected = people.map((person) => ({
    person,
    id: nameFor(person, 'id'),
    email: nameFor(person, 'email'),
    phone: nameFor(person, 'phone'),
    svc: nameFor(person, 'svc'),
  }));
  const differences: Difference[] = [];
  const matched = new Set<FoundPerson>();
  const holders = new Map(
    found.flatMap((each) => each.events.map((event) => [event.name, each] as const)),
  );
  for (const { person, id, email, phone, svc } of expected) {
    const free = found.filter((each) => !matched.has(each));
    const match =
      // A person can lose every other identifier.
      free.find((each) => svc !== null && each.svc === svc) ??
      free.find((each) => id !== null && each.id === id) ??
      free.find((each) => email !== null && each.email === email) ??
      free.find((each) => phone !== null && each.phone === phone);
    const who = id ?? email ?? phone ?? svc ?? 'nobody';
    if (!match) {
      differences.push({
        kind: 'person lost',
        words: `${who} is expected, but is missing`,
      });
      continue;
    }
    matched.add(match);
    for (const kind of KINDS)
      differences.push(...compareText(kind, who, nameFor(person, kind), match[kind]));
    differences.push(...comparePerson(person, match, who, holders));
  }
  for (const each of found)
    if (!matched.has(each)) {
      const who = each.id ?? each.email ?? each.phone ?? each.svc ?? 'nobody';
      differences.push({ kind: 'person too many', words: `${who} exists, but is not expected` });
    }
  return differences;
}

/** @param what - the kind of the thing, for the summary. */
function compareText(
  what: string,
  who: string,
  expected: string | null | undefined,
  found: string | null | undefined,
): readonly Difference[] {
  if ((expected ?? null) === (found ?? null)) return [];
  const [kind] = what.split(' ');
  if (expected == null)
    return [
      { kind: `${kind} too many`, words: `${what} of ${who} is ${found}, but should be absent` },
    ];
  if (found == null)
    return [
      { kind: `${kind} lost`, words: `${what} of ${who} is missing, ${expected} is expected` },
    ];
  return [
    { kind: `${kind} differs`, words: `${what} of ${who} is ${found}, ${expected} is expected` },
  ];
}

function comparePerson(
  person: Person,
  found: FoundPerson,
  who: string,
  holders: ReadonlyMap<string, FoundPerson>,
): readonly Difference[] {
  const { unsubscribed, ...values } = person.values;
  const attributes = Object.fromEntries(
    Object.entries(values)
      .filter(([, { value }]) => value !== null)
      .map(([name, { value }]) => [name, textOf(value)]),
  );
  const differences: Difference[] = [];
  const compareAll = (what: string, expected: object, actual: object): void => {
    const [one, other] = [expected, actual] as Record<string, unknown>[];
    for (const name of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      const texts = [one?.[name], other?.[name]].map((value) =>
        value === undefined ? undefined : textOf(value),
      );
      differences.push(...compareText(`${what} ${name}`, who, texts[0], texts[1]));
    }
  };
  compareAll('attribute', attributes, found.attributes);
  compareAll(
    'unsubscribed',
    { value: unsubscribed?.value ?? false },
    { value: found.unsubscribed },
  );
  compareAll('device', person.devices, found.devices);
  compareAll('relationship', person.relationships, found.relationships);
  const eventsOf = (events: FoundPerson['events']): Record<string, unknown> =>
    Object.fromEntries(
      events.map((event) => [labelOf(event), { type: event.type, data: event.data }]),
    );
  const own = person.events.filter((event) => !isRelation(event));
  compareAll('event', eventsOf(own), eventsOf(found.events));
  compareAll('history', timesOf(person.events.filter(isRelation)), timesOf(found.relations));
  if (new Set(found.events.map(labelOf)).size < found.events.length)
    differences.push({ kind: 'event stored twice', words: `${who} has an event twice` });
  return differences.map((difference) => {
    const [, name = ''] = /^event (\S+) of .* is missing/.exec(difference.words) ?? [];
    const holder = holders.get(name);
    return holder && holder !== found
      ? {
          kind: 'event of another person',
          words: `event ${name} of ${who} is at ${holder.id ?? holder.email}`,
        }
      : difference;
  });
}

/** How often the history has each entry: one relationship may begin and end many times. */
function timesOf(entries: readonly ModelEvent[]): Readonly<Record<string, number>> {
  const times: Record<string, number> = {};
  for (const { type, name, data } of entries) {
    const label = `${type} ${name} ${textOf(data)}`;
    times[label] = (times[label] ?? 0) + 1;
  }
  return times;
}

/** Events of an application have the names of their commands, and each its own data. */
const labelOf = ({ name, data }: FoundPerson['events'][number]): string =>
  /^e\d+$/.test(name) ? name : `${name}/${textOf(data)}`;

/** A call sent after another's answer comes after it in the activity log too. */
function compareOrder(
  found: readonly FoundPerson[],
  history: readonly AnsweredCall[],
): readonly Difference[] {
  const callOf = new Map<string, AnsweredCall>();
  for (const call of history)
    for (const [, name] of JSON.stringify(call.call).matchAll(/"(?:name|event)":"(e\d+)"/g))
      callOf.set(name as string, call);
  return found.flatMap(({ id, email, events }) =>
    events.slice(1).flatMap(({ name }, index) => {
      const before = events[index] as (typeof events)[number];
      const [earlier, later] = [callOf.get(before.name), callOf.get(name)];
      const isWrong = earlier && later && later.answeredAt < earlier.sentAt;
      const words = `${name} of ${id ?? email} is listed after ${before.name}, and was answered before it was sent`;
      return isWrong ? [{ kind: 'events out of order', words }] : [];
    }),
  );
}

/** Identifiers and truth values are written more than once. */
const isRepeated = (name: string): boolean =>
  name === 'unsubscribed' ||
  name.startsWith('svc_subscription_preferences') ||
  KINDS.some((kind) => kind === name);

/**
 * The log contains only changes that took effect: each attribute's changes lead from absence to its value. Each value
 * is written once, so the changes are a chain if every value but the last is left as often as it is reached.
 */
function compareChanges({ id, email, attributes, changes }: FoundPerson): readonly Difference[] {
  const names = new Set((changes ?? []).flatMap((each) => Object.keys(each)));
  return [...names].flatMap((name) => {
    if (isRepeated(name)) return [];
    const balance = new Map<string, number>([['null', 1]]);
    const count = (value: Json, by: number) =>
      balance.set(textOf(value), (balance.get(textOf(value)) ?? 0) + by);
    for (const { [name]: change } of changes ?? []) {
      if (!change) continue;
      count(change.from, -1);
      count(change.to, 1);
    }
    count(attributes[name] ?? null, -1);
    const wrong = [...balance].filter(([, number]) => number !== 0).map(([value]) => value);
    const words = `changes of ${name} of ${id ?? email} do not lead to its value: ${wrong.join(', ')}`;
    return wrong.length === 0 ? [] : [{ kind: 'activity log differs', words }];
  });
}
