/**
 * Random sequences of calls from a seed, about people with common names.
 *
 * A few people have names that overlap. Each value that a call writes contains the call's number, so a report can name
 * the call that wrote it.
 */
import fc from 'fast-check';
import { commandItem, semanticEvent } from './generate-commands.ts';
import type { PlannedCall } from './model/call.ts';
import {
  alias,
  batchOf,
  eventItem,
  importOf,
  type MakeCall,
  mergeItem,
  namesOf,
  personItem,
  pipelinesEvent,
  pipelinesIdentify,
  PLAIN,
  single,
  streamOf,
  visitorItem,
} from './generate-items.ts';
import { calmCall, mustBeInTime, removingCall } from './generate-late.ts';
import { group, relationItem } from './generate-relations.ts';
import {
  device,
  form,
  mergeCustomers,
  message,
  putCustomer,
  removal,
  v1Event,
} from './generate-track.ts';

/**
 * `plain`: one person under one id, without objects, from one sender. Such calls all have the same shard. `late`: a call
 * through {@link LATE_INTAKE} has the same effect if it is late.
 */
export type SequenceKind = 'mixed' | 'plain' | 'late';

export const LATE_INTAKE = 0;

/** The same seed makes the same sequence on every machine. */
export function sequenceOf(seed: number, kind: SequenceKind = 'mixed'): readonly PlannedCall[] {
  const ofKind = { mixed: mixedSequence, plain: plainSequence, late: lateSequence } as const;
  const [sequence] = fc.sample(ofKind[kind](), { seed, numRuns: 1 });
  return sequence as readonly PlannedCall[];
}

function mixedSequence(): fc.Arbitrary<readonly PlannedCall[]> {
  return fc
    .record({
      people: fc.integer({ min: 2, max: 8 }),
      senders: fc.integer({ min: 1, max: 4 }),
      learned: fc.constantFrom(0, 0, 1, 2),
    })
    .chain(({ people, senders, learned }) => sequenceAbout(anyCall(people, learned), senders));
}

const lateSequence = (): fc.Arbitrary<readonly PlannedCall[]> =>
  fc
    .record({ people: fc.integer({ min: 2, max: 5 }), senders: fc.integer({ min: 1, max: 4 }) })
    .chain(({ people, senders }) =>
      sequenceAbout(
        fc.oneof(
          { weight: 3, arbitrary: calmCall(people) },
          { weight: 1, arbitrary: removingCall(people) },
        ),
        senders,
      ),
    )
    .map((all) =>
      all.map((each) =>
        each.intake === LATE_INTAKE && mustBeInTime(each.call)
          ? { ...each, intake: (1 - LATE_INTAKE) as PlannedCall['intake'] }
          : each,
      ),
    );

const plainSequence = (): fc.Arbitrary<readonly PlannedCall[]> =>
  sequenceAbout(
    fc
      .oneof(
        { weight: 3, arbitrary: single(pipelinesIdentify(PLAIN), 'pipelines') },
        { weight: 3, arbitrary: single(pipelinesEvent(PLAIN), 'pipelines') },
        { weight: 3, arbitrary: single(personItem(PLAIN), 'v2') },
        { weight: 3, arbitrary: single(eventItem(PLAIN), 'v2') },
        { weight: 2, arbitrary: device(PLAIN) },
        { weight: 1, arbitrary: removal(PLAIN) },
      )
      // An anonymous id is a second name, and so is an object.
      .filter((make) => /^(?!.*~[ag]).*~p/.test(JSON.stringify(make(1)))),
    1,
  );

function sequenceAbout(
  call: fc.Arbitrary<MakeCall>,
  senders: number,
): fc.Arbitrary<readonly PlannedCall[]> {
  const planned = fc.record({
    make: call,
    sender: fc.nat({ max: senders - 1 }),
    intake: fc.constantFrom<0 | 1>(0, 1),
  });
  const ofLength = (minLength: number, maxLength: number) =>
    fc.array(planned, { minLength, maxLength, size: 'max' });
  // Long histories of many senders allow thousands of states, which cost seconds to follow.
  const long = senders <= 2 ? ofLength(60, 200) : ofLength(20, 30);
  return fc
    .oneof(
      { weight: 6, arbitrary: ofLength(5, 20) },
      { weight: 3, arbitrary: senders <= 2 ? ofLength(20, 60) : ofLength(20, 30) },
      { weight: 1, arbitrary: long },
    )
    .map((all) =>
      all.map(({ make, sender, intake }, index) => ({ call: make(index + 1), sender, intake })),
    );
}

function anyCall(people: number, learned: number): fc.Arbitrary<MakeCall> {
  const names = namesOf(
    Array.from({ length: people }, (_, index) => `~p${index + 1}`),
    learned,
  );
  const pipelinesItem = fc.oneof(
    { weight: 5, arbitrary: pipelinesIdentify(names) },
    { weight: 4, arbitrary: pipelinesEvent(names) },
    { weight: 2, arbitrary: group(names) },
    { weight: 2, arbitrary: alias(names) },
    { weight: 2, arbitrary: semanticEvent(names) },
  );
  const v2Item = fc.oneof(
    { weight: 5, arbitrary: personItem(names) },
    { weight: 1, arbitrary: visitorItem(names) },
    { weight: 4, arbitrary: eventItem(names) },
    { weight: 2, arbitrary: relationItem(names) },
    { weight: 2, arbitrary: mergeItem(names) },
    { weight: 1, arbitrary: commandItem(names) },
  );
  return fc.oneof(
    { weight: 24, arbitrary: single(pipelinesItem, 'pipelines') },
    { weight: 12, arbitrary: single(v2Item, 'v2') },
    { weight: 12, arbitrary: putCustomer(names) },
    { weight: 6, arbitrary: batchOf(pipelinesItem, 'pipelines') },
    { weight: 6, arbitrary: batchOf(v2Item, 'v2') },
    { weight: 2, arbitrary: streamOf(pipelinesItem, 'pipelines') },
    { weight: 2, arbitrary: streamOf(v2Item, 'v2') },
    { weight: 4, arbitrary: v1Event(names) },
    { weight: 6, arbitrary: device(names) },
    { weight: 6, arbitrary: removal(names) },
    { weight: 4, arbitrary: mergeCustomers(names) },
    { weight: 2, arbitrary: form(names) },
    { weight: 2, arbitrary: message(names) },
    // It takes a second.
    { weight: 1, arbitrary: importOf(names) },
  );
}
