/**
 * Model of names over time, for tests of late calls. Pure.
 *
 * It is written from the guarantee. A late call is about the person who had the name when the call was received, as they are
 * now. If that person was merged, it is about the person they became. If they were deleted after that time, the call has
 * no effect on people.
 *
 * `isClear` is false for a late call that the guarantee leaves open: the name was free then, or two clocks do not decide
 * whose it was.
 */
import type { Operation } from '../operations/operation.ts';
import { svcId } from '../values/svc-id.ts';
import { addDevice, identify, merge, remove, track } from './sample-operations.ts';

/** `id:1`, `email:a@x.example`, `svc_id:a30000001`. */
type Name = string;

/** A call of a sequence. A rename is by the svc_id of the person who has the name now. */
export type NamedCall =
  | { readonly type: 'identify'; readonly who: Name; readonly brought: Name | undefined }
  | { readonly type: 'rename'; readonly who: Name; readonly kind: string; readonly to: string }
  | { readonly type: 'merge'; readonly to: Name; readonly from: Name }
  | { readonly type: 'delete' | 'event' | 'device'; readonly who: Name };

interface Person {
  readonly number: number;
  /** Labels of the calls that took effect. */
  readonly labels: readonly string[];
  readonly goneAtMs: number;
  /** The number of the person they became. */
  readonly heir: number | undefined;
}

interface Holding {
  readonly name: Name;
  readonly number: number;
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface NamesOverTime {
  readonly people: readonly Person[];
  readonly holdings: readonly Holding[];
  /** Names that were deleted and had no person. */
  readonly deletedFree: readonly Name[];
}

export const NO_NAMES: NamesOverTime = { people: [], holdings: [], deletedFree: [] };

const kindOf = (name: Name): string => name.slice(0, name.indexOf(':'));
const isKept = (person: Person): boolean =>
  person.goneAtMs === Infinity && person.heir === undefined;

/** The holding of a name at a time; now, if the time is absent. */
const holdingOf = ({ holdings }: NamesOverTime, name: Name, atMs?: number): Holding | undefined =>
  holdings.find(
    (each) =>
      each.name === name &&
      (atMs === undefined ? each.untilMs === Infinity : each.fromMs <= atMs && atMs < each.untilMs),
  );

const namesNow = ({ holdings }: NamesOverTime, number: number): readonly Name[] =>
  holdings.flatMap((each) =>
    each.number === number && each.untilMs === Infinity ? [each.name] : [],
  );

const personOf = ({ people }: NamesOverTime, number: number): Person =>
  people.find((each) => each.number === number) as Person;

/** The person, or whom they became. */
function followed(state: NamesOverTime, number: number): Person {
  const person = personOf(state, number);
  return person.heir === undefined ? person : followed(state, person.heir);
}

/** Whom a name means. @param atMs - when the late call was received. */
function meant(state: NamesOverTime, name: Name, atMs?: number): Person | undefined {
  const holding = holdingOf(state, name, atMs);
  return holding && followed(state, holding.number);
}

const withPerson = (state: NamesOverTime, next: Person): NamesOverTime => ({
  ...state,
  people: [...state.people.filter(({ number }) => number !== next.number), next],
});

const labelled = (state: NamesOverTime, person: Person, label: string): NamesOverTime =>
  withPerson(state, { ...person, labels: [...person.labels, label] });

const held = (
  state: NamesOverTime,
  name: Name,
  number: number,
  fromMs: number,
  untilMs = Infinity,
): NamesOverTime => ({
  ...state,
  holdings: [...state.holdings, { name, number, fromMs, untilMs }],
});

const lost = (state: NamesOverTime, names: readonly Name[], untilMs: number): NamesOverTime => ({
  ...state,
  holdings: state.holdings.map((each) =>
    names.includes(each.name) && each.untilMs === Infinity ? { ...each, untilMs } : each,
  ),
});

const hasKind = (state: NamesOverTime, number: number, kind: string): boolean =>
  namesNow(state, number).some((name) => kindOf(name) === kind);

/** The names of a call, as its owner of the time is looked up by them. */
const namesOf = (call: NamedCall): readonly Name[] =>
  call.type === 'merge' ? [call.to, call.from] : [call.who];

/** All names that had a person at a time. */
export function namesAt(state: NamesOverTime, atMs: number): readonly Name[] {
  return state.holdings.flatMap(({ name, fromMs, untilMs }) =>
    fromMs <= atMs && atMs < untilMs ? [name] : [],
  );
}

/**
 * True if the guarantee decides the effect of the late call.
 *
 * @param clocksApartMs - the difference of two clocks: a call of the time between them is about either owner.
 */
export function isClear(
  state: NamesOverTime,
  call: NamedCall,
  receivedAtMs: number,
  clocksApartMs: number,
): boolean {
  if (call.type === 'rename') return false;
  const isApart = (atMs: number): boolean => Math.abs(atMs - receivedAtMs) > clocksApartMs;
  const { brought } = call.type === 'identify' ? call : {};
  const wasHeld = state.holdings.some(({ name }) => name === brought);
  if (brought !== undefined && (wasHeld || state.deletedFree.includes(brought))) return false;
  return namesOf(call).every((name) => {
    const owner = meant(state, name, receivedAtMs);
    const holdings = state.holdings.filter((each) => each.name === name);
    return (
      owner !== undefined &&
      owner.goneAtMs > receivedAtMs &&
      isApart(owner.goneAtMs) &&
      holdings.every(({ fromMs, untilMs }) => isApart(fromMs) && isApart(untilMs))
    );
  });
}

/**
 * Applies a call. @param receivedAtMs - by the order of the calls.
 *
 * @param label - of the call, unique. @param newNumber - of the person whom the call makes.
 */
export function applyNamed(
  state: NamesOverTime,
  call: NamedCall,
  { receivedAtMs, isLate, label }: { receivedAtMs: number; isLate: boolean; label: string },
  newNumber: () => number,
): NamesOverTime {
  const atMs = isLate ? receivedAtMs : undefined;
  switch (call.type) {
    case 'delete': {
      const person = meant(state, call.who, atMs);
      if (!person) return { ...state, deletedFree: [...state.deletedFree, call.who] };
      if (!isKept(person)) return state;
      const gone = withPerson(state, { ...person, goneAtMs: receivedAtMs });
      return lost(gone, namesNow(gone, person.number), receivedAtMs);
    }
    case 'merge':
      return joined(
        state,
        meant(state, call.to, atMs),
        meant(state, call.from, atMs),
        receivedAtMs,
      );
    case 'rename':
      return renamed(state, call, receivedAtMs);
    case 'event':
    case 'device': {
      const [made, person] = found(state, call.who, atMs, receivedAtMs, newNumber);
      return person && isKept(person) ? labelled(made, person, label) : made;
    }
    case 'identify':
      return identified(state, call, { atMs, receivedAtMs, label }, newNumber);
  }
}

/** The person of a name. A call in time makes the person if the name is free. */
function found(
  state: NamesOverTime,
  who: Name,
  atMs: number | undefined,
  receivedAtMs: number,
  newNumber: () => number,
): readonly [NamesOverTime, Person | undefined] {
  const person = meant(state, who, atMs);
  if (person || atMs !== undefined || kindOf(who) === 'svc_id') return [state, person];
  const made = { number: newNumber(), labels: [], goneAtMs: Infinity, heir: undefined };
  const named = held(withPerson(state, made), who, made.number, receivedAtMs);
  return [held(named, `svc_id:${svcId(made.number)}`, made.number, receivedAtMs), made];
}

function identified(
  state: NamesOverTime,
  { who, brought }: Extract<NamedCall, { type: 'identify' }>,
  { atMs, receivedAtMs, label }: { atMs: number | undefined; receivedAtMs: number; label: string },
  newNumber: () => number,
): NamesOverTime {
  const receiver = brought === undefined ? undefined : meant(state, brought);
  const isReceived =
    atMs === undefined &&
    receiver !== undefined &&
    !meant(state, who) &&
    kindOf(who) !== 'svc_id' &&
    !hasKind(state, receiver.number, kindOf(who));
  const [made, person] = isReceived
    ? [held(state, who, receiver.number, receivedAtMs), receiver]
    : found(state, who, atMs, receivedAtMs, newNumber);
  if (!person) return made;
  const isGone = !isKept(person);
  const next = isGone ? made : labelled(made, person, label);
  if (brought === undefined || holdingOf(next, brought)) return next;
  if (!isGone)
    return hasKind(next, person.number, kindOf(brought))
      ? next
      : held(next, brought, person.number, receivedAtMs);
  // They had it until they were deleted.
  const hadKind = state.holdings.some(
    ({ name, number, untilMs }) =>
      number === person.number && kindOf(name) === kindOf(brought) && untilMs === person.goneAtMs,
  );
  return hadKind ? next : held(next, brought, person.number, receivedAtMs, person.goneAtMs);
}

function renamed(
  state: NamesOverTime,
  { who, kind, to }: Extract<NamedCall, { type: 'rename' }>,
  atMs: number,
): NamesOverTime {
  const person = meant(state, who);
  const name = `${kind}:${to}`;
  if (!person || (to !== '' && holdingOf(state, name))) return state;
  const before = namesNow(state, person.number).filter((each) => kindOf(each) === kind);
  const next = lost(state, before, atMs);
  return to === '' ? next : held(next, name, person.number, atMs);
}

function joined(
  state: NamesOverTime,
  primary: Person | undefined,
  secondary: Person | undefined,
  atMs: number,
): NamesOverTime {
  if (!primary || !secondary || primary === secondary) return state;
  if (!isKept(primary) || !isKept(secondary)) return state;
  const names = namesNow(state, secondary.number);
  const moved = names.filter(
    (name) => kindOf(name) !== 'svc_id' && !hasKind(state, primary.number, kindOf(name)),
  );
  let next = lost(state, names, atMs);
  for (const name of moved) next = held(next, name, primary.number, atMs);
  next = withPerson(next, { ...secondary, heir: primary.number, labels: [] });
  return withPerson(next, { ...primary, labels: [...primary.labels, ...secondary.labels] });
}

/** The people who are there, with their names and labels; sorted. */
export function peopleIn(state: NamesOverTime): readonly string[] {
  return state.people
    .filter(isKept)
    .map(({ number, labels }) => describe(namesNow(state, number), labels))
    .toSorted();
}

/** A person in words, for the comparison. */
export const describe = (names: readonly Name[], labels: readonly string[]): string =>
  `${names
    .filter((name) => kindOf(name) !== 'svc_id')
    .toSorted()
    .join(' ')} did ${labels.toSorted().join(' ')}`;

/** The operation of a call; undefined for a change of a free name. */
export function operationOf(
  state: NamesOverTime,
  call: NamedCall,
  label: string,
): Operation | undefined {
  switch (call.type) {
    case 'identify': {
      const [kind = '', value = ''] = call.brought?.split(/:(.*)/s) ?? [];
      return identify(call.who, { [label]: true, ...(kind !== '' && { [kind]: value }) });
    }
    case 'rename': {
      const person = meant(state, call.who);
      return person && identify(`svc_id:${svcId(person.number)}`, { [call.kind]: call.to });
    }
    case 'merge':
      return merge(call.to, call.from);
    case 'delete':
      return remove(call.who);
    case 'event':
      return track(call.who, label, { eventId: label });
    case 'device':
      return addDevice(call.who, label);
  }
}
