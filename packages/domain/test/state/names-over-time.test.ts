/**
 * Random late calls, judged by a model of names over time.
 *
 * A late call is about the owner of its name at its receipt. Since then, owners give names up and take them again. They
 * become part of each other, and are deleted.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import { describe as describePerson, peopleIn } from '../../src/testing/names-over-time.ts';
import { NamedSequence, type CallDraft } from '../../src/testing/named-sequences.ts';
import { MemoryStore } from '../support/memory-store.ts';

const RUNS = 300;
const SEED = 36;
const LENGTH_MAX = 40;

const draft: fc.Arbitrary<CallDraft> = fc.record({
  type: fc.constantFrom(
    'identify',
    'identify',
    'identify',
    'rename',
    'rename',
    'merge',
    'delete',
    'event',
    'device',
  ),
  isLate: fc.boolean(),
  who: fc.nat(),
  other: fc.nat(),
  hasOther: fc.boolean(),
  time: fc.nat(),
  isJoined: fc.boolean(),
  clock: fc.nat(),
});

const numberOf = (store: MemoryStore, name: string): number =>
  store.identifiers.find(({ kind, value }) => `${kind}:${value}` === name)?.personId ?? 0;

const peopleOf = (store: MemoryStore): readonly string[] =>
  store.people
    .map(({ personId, attributes }) =>
      describePerson(
        store.identifiers
          .filter((row) => row.personId === personId)
          .map(({ kind, value }) => `${kind}:${value}`),
        [
          ...Object.keys(attributes),
          ...store.events.flatMap((row) =>
            row.kind === 'event' && row.personId === personId ? [row.name ?? ''] : [],
          ),
          ...store.devices.flatMap((row) => (row.personId === personId ? [row.token] : [])),
        ],
      ),
    )
    .toSorted();

it.each([0, 25])(
  'random late calls are about the owners of their names when they were received; clocks are %s ms apart',
  (clocksApartMs) => {
    let lateCount = 0;
    fc.assert(
      fc.property(
        fc.array(draft, { minLength: 3, maxLength: LENGTH_MAX, size: 'max' }),
        (drafts) => {
          const store = new MemoryStore();
          const sequence = new NamedSequence(clocksApartMs);
          let joined: Operation[] = [];
          for (const each of drafts) {
            const next = sequence.next(each);
            if (!next) continue;
            if (each.isLate) lateCount++;
            joined.push(next.operation);
            if (each.isJoined && !next.makesPerson) {
              next.after(0);
              continue;
            }
            store.apply(...joined);
            joined = [];
            const state = next.after(numberOf(store, next.who));
            expect(peopleOf(store)).toEqual(peopleIn(state));
          }
        },
      ),
      { numRuns: RUNS, seed: SEED },
    );
    expect(lateCount).toBeGreaterThan(RUNS);
  },
);
