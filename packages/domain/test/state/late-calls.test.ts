/** Random late calls bring no deleted person back: a name has a person only if it would have one without the delay. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import type { DeletedIdentifier, IdentifierRow } from '../../src/state/loaded-state.ts';
import {
  addDevice,
  form,
  identify,
  NOW_MS,
  relateObject,
  remove,
  suppress,
  track,
  unsuppress,
} from '../../src/testing/sample-operations.ts';
import { MemoryStore } from '../support/memory-store.ts';

const RUNS = 1_000;
const DELETED_AT_MS = NOW_MS + 1_000;
const UNSUPPRESSED_AT_MS = NOW_MS + 2_000;
const IDS = ['1', '2'];
const EMAILS = ['a@x.example', 'b@x.example'];
const VISITORS = ['v', 'w'];

const maybe = (values: readonly string[]) =>
  fc.option(fc.constantFrom(...values), { nil: undefined });
const person = fc.oneof(
  fc.constantFrom(...IDS).map((value) => `id:${value}`),
  fc.constantFrom(...EMAILS).map((value) => `email:${value}`),
);
const visitor = fc.constantFrom(...VISITORS).map((value) => `anonymous_id:${value}`);
const brought = fc.record({ id: maybe(IDS), email: maybe(EMAILS), anonymous_id: maybe(VISITORS) });
const call: fc.Arbitrary<(number: number) => Operation> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.oneof({ weight: 3, arbitrary: person }, { weight: 1, arbitrary: visitor }), brought)
      .map(([who, all]) => {
        const [kind = ''] = who.split(':');
        const others = Object.entries(all).filter(([name, value]) => name !== kind && value);
        return () => identify(who, Object.fromEntries(others) as Record<string, string>);
      }),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(person, maybe(VISITORS)).map(
      ([who, anonymousId]) =>
        (number: number) =>
          track(who, 'seen', { eventId: String(number), ...(anonymousId && { anonymousId }) }),
    ),
  },
  {
    weight: 1,
    arbitrary: visitor.map(
      (who) => (number: number) => track(who, 'seen', { eventId: String(number) }),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(person, maybe(EMAILS)).map(
      ([who, email]) =>
        () =>
          form(who, 'f', email === undefined ? {} : { email }),
    ),
  },
  { weight: 1, arbitrary: person.map((who) => () => relateObject('acme', who)) },
  { weight: 1, arbitrary: person.map((who) => () => addDevice(who, 'token')) },
);

const lateCalls = (
  makes: readonly ((number: number) => Operation)[],
  firstNumber: number,
  firstAtMs: number,
): Operation[] =>
  makes.map((make, index) => ({
    ...make(firstNumber + index),
    receivedAtMs: firstAtMs + index,
  }));

/** Names that have a person. */
const namesIn = (store: MemoryStore): string[] => presentRows(store).map(nameOf);

const presentRows = (store: MemoryStore): IdentifierRow[] =>
  store.identifiers.filter(({ personId, suppressed }) => personId !== null && !suppressed);

const withNamesAlone = (deleted: readonly DeletedIdentifier[]): DeletedIdentifier[] =>
  deleted
    .filter(({ kind }) => kind !== 'svc_id')
    .map((each) => ({ ...each, owners: null, names: null }));

const nameOf = ({ kind, value }: IdentifierRow): string => `${kind}:${value}`;

it('random calls that come after the deletion or suppression of a person make no person anew', () => {
  const calls = fc.array(call, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(
      calls,
      calls,
      person,
      fc.boolean(),
      fc.boolean(),
      (before, late, whom, isSuppressed, isEarlier) => {
        const stored = before.map((make, index) => make(index));
        const delayed = lateCalls(late, 100, NOW_MS + 1);
        const removal = {
          ...(isSuppressed ? suppress(whom) : remove(whom)),
          receivedAtMs: DELETED_AT_MS,
        };
        const [inTime, tooLate] = [new MemoryStore(), new MemoryStore()];
        for (const each of stored) for (const store of [inTime, tooLate]) store.apply(each);
        // Else a late call can give the deleted name to a present person, who would have been deleted.
        fc.pre(namesIn(tooLate).includes(whom));
        for (const each of [...delayed, removal]) inTime.apply(each);
        tooLate.apply(removal);
        // A worker of an earlier version remembers only the names.
        if (isEarlier) tooLate.deletedIdentifiers = withNamesAlone(tooLate.deletedIdentifiers);
        for (const each of delayed) tooLate.apply({ ...each, isReplayed: true });
        const expected = namesIn(inTime);
        expect(namesIn(tooLate).filter((name) => !expected.includes(name))).toEqual([]);
      },
    ),
    { numRuns: RUNS, seed: 36 },
  );
});

it('random calls of before and during a suppression that come after its end make no person anew', () => {
  const calls = fc.array(call, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(calls, calls, calls, person, (before, early, during, whom) => {
      const stored = before.map((make, index) => make(index));
      const ofBefore = lateCalls(early, 100, NOW_MS + 1);
      const ofMeanwhile = lateCalls(during, 200, DELETED_AT_MS + 1);
      const blocking = { ...suppress(whom), receivedAtMs: DELETED_AT_MS };
      const freeing = { ...unsuppress(whom), receivedAtMs: UNSUPPRESSED_AT_MS };
      const [inTime, tooLate] = [new MemoryStore(), new MemoryStore()];
      for (const each of stored) for (const store of [inTime, tooLate]) store.apply(each);
      fc.pre(namesIn(tooLate).includes(whom));
      for (const each of [...ofBefore, blocking, ...ofMeanwhile, freeing]) inTime.apply(each);
      for (const each of [blocking, freeing]) tooLate.apply(each);
      for (const each of [...ofBefore, ...ofMeanwhile])
        tooLate.apply({ ...each, isReplayed: true });
      const expected = namesIn(inTime);
      // A call that names a present person beside a blocked one still gives the present one its other names.
      const rows = presentRows(tooLate);
      const known = new Set(
        rows.filter((row) => expected.includes(nameOf(row))).map(({ personId }) => personId),
      );
      const anew = rows.filter(({ personId }) => !known.has(personId));
      expect(anew.map(nameOf)).toEqual([]);
    }),
    { numRuns: RUNS, seed: 36 },
  );
});
