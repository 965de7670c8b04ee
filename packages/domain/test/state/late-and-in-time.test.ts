/**
 * Late calls end as the same calls in time: they bring back no deleted person and lose no data of others.
 *
 * In time means after the stored calls and before the deletion that they were acknowledged before.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import {
  addDevice,
  form,
  identify,
  merge,
  NOW_MS,
  relate,
  relateObject,
  remove,
  suppress,
  track,
  unsuppress,
} from '../../src/testing/sample-operations.ts';
import type { JsonObject } from '../../src/values/json.ts';
import { svcId } from '../../src/values/svc-id.ts';
import { MemoryStore } from '../support/memory-store.ts';

const RUNS = 400;
/** Of each, about ninety are left out. */
const RUNS_OF_TWO = 50;
const SEED = 36;
const STEP_MS = 1_000;
const IDS = ['1', '2', '3'];
const EMAILS = ['a@x.example', 'b@x.example', 'c@x.example'];
const PHONES = ['+15550100', '+15550101'];
const VISITORS = ['v', 'w'];
const NUMBERS = [svcId(1), svcId(2)];

const named = (kind: string, values: readonly string[]) =>
  fc.constantFrom(...values).map((value) => `${kind}:${value}`);
const maybe = (values: readonly string[]) =>
  fc.option(fc.constantFrom(...values), { nil: undefined });
const maker = fc.oneof(
  { weight: 3, arbitrary: named('id', IDS) },
  { weight: 3, arbitrary: named('email', EMAILS) },
  { weight: 2, arbitrary: named('phone', PHONES) },
);
const visitor = named('anonymous_id', VISITORS);
const number = named('svc_id', NUMBERS);
const anybody = fc.oneof(
  { weight: 6, arbitrary: maker },
  { weight: 1, arbitrary: visitor },
  { weight: 1, arbitrary: number },
);
const brought = fc.record({ id: maybe(IDS), email: maybe(EMAILS), anonymous_id: maybe(VISITORS) });

const byName = fc.oneof({ weight: 6, arbitrary: maker }, { weight: 1, arbitrary: visitor });

const alias = (to: string, from: string): Operation =>
  ({ ...merge(to, from), isAlias: true }) as Operation;

/** A call under a svc_id gives no name, since it would take another one away. */
function identification(of: fc.Arbitrary<string>): fc.Arbitrary<Operation> {
  return fc.tuple(of, brought).map(([who, all]) => {
    const [kind = ''] = who.split(':');
    const entries = Object.entries(all).filter(
      ([name, value]) => value !== undefined && name !== kind && kind !== 'svc_id',
    );
    return identify(who, Object.fromEntries(entries) as JsonObject);
  });
}

function callAbout(of: fc.Arbitrary<string>): fc.Arbitrary<Operation> {
  const seen = fc.tuple(of, maybe(VISITORS)).map(([who, anonymousId]): Operation => {
    const isOfVisitor = anonymousId === undefined || who.startsWith('anonymous');
    return track(who, 'seen', isOfVisitor ? {} : { anonymousId });
  });
  const filled = fc
    .tuple(maker, maybe(EMAILS))
    .map(([who, email]): Operation => form(who, 'f', email === undefined ? {} : { email }));
  return fc.oneof(
    { weight: 6, arbitrary: identification(of) },
    { weight: 3, arbitrary: seen },
    { weight: 1, arbitrary: filled },
    { weight: 1, arbitrary: of.map((who) => relateObject('acme', who)) },
    { weight: 1, arbitrary: of.map((who) => relate(who, 'other')) },
    { weight: 1, arbitrary: of.map((who) => addDevice(who, 'token')) },
  );
}

/** Two people become one, and a name takes the place of another. */
const joining: fc.Arbitrary<Operation> = fc.oneof(
  fc.tuple(maker, maker).map(([to, from]) => merge(to, from)),
  fc.tuple(maker, maker).map(([to, from]) => alias(to, from)),
);
const renaming = fc
  .tuple(number, brought)
  .map(([who, { id, email }]): Operation =>
    identify(who, { ...(id && { id }), ...(email && { email }) }),
  );
const aliasing = fc.tuple(maker, visitor).map(([to, from]) => alias(to, from));
const call = fc.oneof(
  { weight: 12, arbitrary: callAbout(anybody) },
  { weight: 1, arbitrary: aliasing },
);
const storedCall = fc.oneof(
  { weight: 8, arbitrary: call },
  { weight: 2, arbitrary: joining },
  { weight: 1, arbitrary: renaming },
);
/** Calls that name one person by one name. */
const plainCall = maker.chain((who) =>
  fc.constantFrom<Operation>(
    identify(who),
    track(who, 'seen'),
    addDevice(who, 'token'),
    relate(who, 'other'),
    form(who, 'f', {}),
  ),
);
const callByName = callAbout(byName);
const storedByName = fc.oneof(
  { weight: 8, arbitrary: callByName },
  { weight: 2, arbitrary: joining },
);

const madeAt = (operations: readonly Operation[], atMs: number): Operation[] =>
  operations.map((operation, index) => {
    const receivedAtMs = atMs + index;
    const place = String(receivedAtMs - NOW_MS);
    if (operation.type === 'event.track') return { ...operation, receivedAtMs, eventId: place };
    if (operation.type !== 'person.identify') return { ...operation, receivedAtMs };
    const attributes = { ...operation.attributes, [`set ${place}`]: true };
    return { ...operation, receivedAtMs, attributes };
  });

const isReplayed = (operation: Operation): Operation => ({ ...operation, isReplayed: true });

/** Everything that can be read about people who are there, objects and visitors; numbers and times left out. */
function stateOf(store: MemoryStore): object {
  const namesOf = (personId: number): string[] =>
    store.identifiers
      .filter((row) => row.personId === personId)
      .map(({ kind, value }) => `${kind}:${value}`)
      .toSorted();
  const objectOf = (objectNumber: number) =>
    store.objects.find((row) => row.objectNumber === objectNumber)?.objectId ?? '';
  const eventsOf = (personId: number | null, anonymousId?: string) =>
    store.events
      .filter(
        (row) =>
          ['event', 'form'].includes(row.kind) &&
          row.personId === personId &&
          (personId !== null || row.anonymousId === anonymousId),
      )
      .map((row) => row.name ?? '')
      .toSorted();
  const people = store.people.map(({ personId, id, email, phone, attributes }) => ({
    names: namesOf(personId),
    own: { id, email, phone },
    attributes,
    events: eventsOf(personId),
    devices: store.devices.filter((row) => row.personId === personId).length,
    related: store.relationships
      .filter((row) => row.personId === personId)
      .map((row) => objectOf(row.objectNumber))
      .toSorted(),
  }));
  return {
    people: people.toSorted((one, other) => (textOf(one) < textOf(other) ? -1 : 1)),
    blocked: store.identifiers
      .filter((row) => row.suppressed)
      .map(({ kind, value }) => `${kind}:${value}`)
      .toSorted(),
    objects: store.objects.map((row) => row.objectId).toSorted(),
    visitors: VISITORS.map((value) => {
      const kept = store.visitors.find((row) => row.anonymousId === value)?.profile;
      return [
        eventsOf(null, value),
        Object.keys(kept?.attributes ?? {}).toSorted(),
        Object.keys(kept?.devices ?? {}),
        Object.keys(kept?.relationships ?? {})
          .map((each) => objectOf(Number(each)))
          .toSorted(),
      ];
    }),
  };
}

const textOf = (person: unknown): string => JSON.stringify(person);

const isPresent = (store: MemoryStore, name: string): boolean =>
  store.identifiers.some(
    ({ kind, value, personId, suppressed }) =>
      `${kind}:${value}` === name && personId !== null && !suppressed,
  ) || store.people.some((row) => `svc_id:${svcId(row.personId)}` === name);

const applyAll = (store: MemoryStore, operations: readonly Operation[]): void => {
  for (const each of operations) store.apply(each);
};

const namesOfEach = (store: MemoryStore) =>
  store.identifiers.map(({ personId, kind, value }) => [personId, kind, value] as const);

const isSame = (one: unknown, other: unknown): boolean => textOf(one) === textOf(other);

const calls = (of: fc.Arbitrary<Operation>, maxLength: number) =>
  fc.array(of, { minLength: 1, maxLength });

it('late calls of before a deletion or suppression end as in time', () => {
  fc.assert(
    fc.property(
      calls(storedCall, 6),
      calls(call, 6),
      calls(call, 2),
      anybody,
      fc.constantFrom('delete', 'suppress', 'unsuppress'),
      (before, late, after, whom, how) => {
        const stored = madeAt(before, NOW_MS);
        const delayed = madeAt(late, NOW_MS + STEP_MS);
        const removal: Operation[] = [
          { ...(how === 'delete' ? remove(whom) : suppress(whom)), receivedAtMs: NOW_MS + 2_000 },
        ];
        if (how === 'unsuppress')
          removal.push({ ...unsuppress(whom), receivedAtMs: NOW_MS + 3_000 });
        const [inTime, tooLate] = [new MemoryStore(), new MemoryStore()];
        for (const each of stored) for (const store of [inTime, tooLate]) store.apply(each);
        // Else a late call can give the name to a present person, who would have been deleted.
        fc.pre(isPresent(tooLate, whom));
        for (const each of [...delayed, ...removal]) inTime.apply(each);
        for (const each of removal) tooLate.apply(each);
        for (const each of delayed) tooLate.apply(isReplayed(each));
        expect(stateOf(tooLate)).toEqual(stateOf(inTime));
        // Names are free and people are known as if the calls had been in time.
        for (const each of madeAt(after, NOW_MS + 4_000))
          for (const store of [inTime, tooLate]) store.apply(each);
        expect(stateOf(tooLate)).toEqual(stateOf(inTime));
      },
    ),
    { numRuns: RUNS, seed: SEED },
  );
});

it('late calls about a deleted person make no person anew after a change of a name or a merge', () => {
  fc.assert(
    fc.property(
      calls(storedCall, 5),
      calls(plainCall, 3),
      calls(fc.oneof(joining, renaming), 1),
      maker,
      (before, late, changing, whom) => {
        const changes = madeAt(changing, NOW_MS + 1_500);
        const removal = { ...remove(whom), receivedAtMs: NOW_MS + 2_000 };
        const delayed = madeAt(late, NOW_MS + 1_000);
        const [inTime, tooLate] = [new MemoryStore(), new MemoryStore()];
        for (const store of [inTime, tooLate]) applyAll(store, madeAt(before, NOW_MS));
        applyAll(inTime, delayed);
        // A person whom a late call makes is not there for the merge.
        fc.pre(inTime.people.length === tooLate.people.length);
        applyAll(inTime, [...changes, removal]);
        applyAll(tooLate, changes);
        fc.pre(isPresent(tooLate, whom));
        applyAll(tooLate, [removal]);
        fc.pre(isSame({ ...stateOf(inTime), objects: [] }, { ...stateOf(tooLate), objects: [] }));
        applyAll(tooLate, delayed.map(isReplayed));
        expect(stateOf(tooLate)).toEqual(stateOf(inTime));
      },
    ),
    { numRuns: RUNS_OF_TWO, seed: SEED, maxSkipsPerRun: 300 },
  );
});

it('late calls of before each of two deletions end as in time, if the calls of the first leave no data', () => {
  fc.assert(
    fc.property(
      calls(storedByName, 4),
      // A visitor's own call belongs to whom the visitor turned out to be, late or not.
      calls(callAbout(maker), 3),
      calls(callByName, 4),
      calls(callByName, 3),
      fc.tuple(byName, byName),
      fc.tuple(fc.boolean(), fc.boolean()),
      (first, lateFirst, second, lateSecond, [one, other], [frees, suppresses]) => {
        const [a, b] = [madeAt(first, NOW_MS), madeAt(second, NOW_MS + 3_000)];
        const ofFirst = madeAt(lateFirst, NOW_MS + 1_000);
        const ofSecond = madeAt(lateSecond, NOW_MS + 4_000);
        const removal: Operation[] = frees
          ? [
              { ...suppress(one), receivedAtMs: NOW_MS + 2_000 },
              { ...unsuppress(one), receivedAtMs: NOW_MS + 2_500 },
            ]
          : [{ ...remove(one), receivedAtMs: NOW_MS + 2_000 }];
        const last = { ...(suppresses ? suppress : remove)(other), receivedAtMs: NOW_MS + 5_000 };
        const [inTime, tooLate] = [new MemoryStore(), new MemoryStore()];
        applyAll(inTime, [...a, ...ofFirst]);
        applyAll(tooLate, a);
        fc.pre(isPresent(tooLate, one));
        for (const store of [inTime, tooLate]) applyAll(store, removal);
        fc.pre(isSame({ ...stateOf(inTime), objects: [] }, { ...stateOf(tooLate), objects: [] }));
        const names = namesOfEach(tooLate);
        for (const store of [inTime, tooLate]) applyAll(store, b);
        // Since when an older person has a new name is not remembered.
        const olderIds = new Set(names.map(([personId]) => personId));
        fc.pre(
          namesOfEach(tooLate).every(
            (each) => !olderIds.has(each[0]) || names.some((known) => isSame(known, each)),
          ),
        );
        fc.pre(isPresent(tooLate, other));
        applyAll(inTime, [...ofSecond, last]);
        applyAll(tooLate, [last, ...[...ofFirst, ...ofSecond].map(isReplayed)]);
        expect(stateOf(tooLate)).toEqual(stateOf(inTime));
      },
    ),
    { numRuns: RUNS_OF_TWO, seed: SEED, maxSkipsPerRun: 300 },
  );
});
