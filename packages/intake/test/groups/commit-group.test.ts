/** Sizes, places and keys of the calls of one flush. */
import type { Operation, TrackEvent } from '@sluice/domain/operations/operation';
import { keyHashOf, shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { readPlaces } from '@sluice/domain/operations/flush-places';
import { CommitBatchBuffers, commitBatchText } from '@sluice/platform/queue/commit-batch-writer';
import { expect, test } from 'vitest';
import { RepeatedEventIds } from '../../src/groups/repeated-event-ids.ts';
import { CommitGroup } from '../../src/groups/commit-group.ts';
import { FastTrackParser } from '../../src/groups/fast-track-parser.ts';
import { OperationWriter } from '../../src/groups/operation-writer.ts';
import { event } from '../support/batcher-under-test.ts';
import { operationsOfText } from '../support/operations-in.ts';

const SHARD_COUNT = 4;
const done = () => undefined;

function createGroup(shardCount = SHARD_COUNT): CommitGroup {
  let id = 0;
  const ids = new RepeatedEventIds();
  return new CommitGroup(shardCount, () => `id-${id++}`, new CommitBatchBuffers(), false, ids);
}

/** The batches as they go to the broker. */
const finish = (group: CommitGroup) =>
  group.finish(undefined).map(({ shard, envelope }) => {
    const text = commitBatchText(envelope);
    const { flushId, places } = JSON.parse(text) as { flushId?: string; places?: string };
    const { keys, isOrderFree } = envelope as unknown as {
      keys: Uint32Array;
      isOrderFree: boolean;
    };
    return {
      shard,
      flushId,
      places: places === undefined ? undefined : readPlaces(places),
      keys: new Set(keys),
      isOrderFree,
      operations: operationsOfText(text),
    };
  });

/** Two people of different shards. */
const [ONE, OTHER] = ['a', 'b', 'c', 'd', 'e'].reduce<string[]>(
  (found, person) =>
    found.some((each) => shardOf(1, each, SHARD_COUNT) === shardOf(1, person, SHARD_COUNT))
      ? found
      : [...found, person],
  [],
) as [string, string];

test('a flush without calls has no size and no time; each call adds its own, by workspace too', () => {
  const group = createGroup();
  expect(group).toMatchObject({
    operationCount: 0,
    sizeBytes: 0,
    arrivedAtMs: Infinity,
    isAtomic: false,
    isAdmitted: false,
    heldSizeBytes: 0,
  });
  group.add([event(ONE, '1', 30)], 10, done);
  group.add([event(ONE, '2', 20), event(ONE, '3', 25)], 5, done);
  group.add([{ ...event(OTHER, '4', 40), environmentId: 2 }], 7, done);
  group.add([event(OTHER, '5', 50)], 3, done);
  // Each of these calls is of one shard.
  expect(group).toMatchObject({
    operationCount: 5,
    sizeBytes: 25,
    arrivedAtMs: 20,
    isAtomic: false,
  });
  expect([...group.sizes]).toEqual([
    [1, 18],
    [2, 7],
  ]);
  expect(group.callers).toHaveLength(4);
  expect(group.heldSizeBytes).toBe(
    group.parts.reduce((sum, { writer }) => sum + writer.heldSizeBytes, 0),
  );
  expect(group.heldSizeBytes).toBeGreaterThan(0);
});

test('simple calls have their places and keys, and span shards as other calls do', () => {
  const parser = new FastTrackParser();
  const addParsed = (group: CommitGroup, calls: readonly object[]) => {
    const bytes = new TextEncoder().encode(
      JSON.stringify({ batch: calls.map((call) => ({ type: 'track', event: 'e', ...call })) }),
    );
    const parsed = parser.parse(bytes, true, 1, 1_764_000_000_000);
    if (!parsed) throw new Error('the calls are not simple');
    group.addParsed(1, parsed, bytes.length, { committed: done });
    return bytes.length;
  };
  const group = createGroup();
  const sizeBytes = addParsed(group, [
    { userId: ONE },
    { userId: OTHER, anonymousId: 'visitor' },
    { userId: ONE },
  ]);
  expect(group).toMatchObject({ operationCount: 3, isAtomic: true, sizeBytes });
  expect([...group.sizes]).toEqual([[1, sizeBytes]]);
  const parts = finish(group);
  expect(parts).toMatchObject([
    { shard: shardOf(1, ONE, SHARD_COUNT), places: [0, 2], isOrderFree: true },
    { shard: shardOf(1, OTHER, SHARD_COUNT), places: [1], isOrderFree: false },
  ]);
  expect(parts.map(({ keys }) => keys)).toEqual([
    new Set([keyHashOf(1, ONE)]),
    new Set([keyHashOf(1, OTHER), keyHashOf(1, 'visitor')]),
  ]);
  expect(new Set(parts.map(({ flushId }) => flushId))).toEqual(new Set(['id-0']));

  const ofOnePerson = createGroup();
  addParsed(ofOnePerson, [{ userId: ONE }, { userId: ONE }]);
  expect(ofOnePerson.isAtomic).toBe(false);
  expect(finish(ofOnePerson)).toMatchObject([{ flushId: undefined, places: undefined }]);
});

test('a call that is cut between commit batches names the place of each operation once', () => {
  const group = createGroup();
  group.add([event(ONE, 'before-1'), event(ONE, 'before-2')], 1, done);
  const operations = Array.from({ length: 1_001 }, (_, n) => event(ONE, String(n)));
  group.add([...operations, event(OTHER, 'last')], 10, done);
  expect(group.isAtomic).toBe(true);
  const byPlace = finish(group).flatMap(({ places, operations: written }) => {
    expect(places).toHaveLength(written.length);
    return written.map((operation, index) => [places?.[index] as number, operation] as const);
  });
  byPlace.sort(([one], [other]) => one - other);
  expect(byPlace.map(([place]) => place)).toEqual(byPlace.map((_, index) => index));
  expect(byPlace.map(([, operation]) => (operation as TrackEvent).eventId)).toEqual([
    'before-1',
    'before-2',
    ...operations.map(({ eventId }) => eventId),
    'last',
  ]);
});

test('written operations of two shards span commit batches, and operations of one shard do not', () => {
  const written = (...people: string[]) => {
    const writer = new OperationWriter(false);
    for (const person of people) writer.add(event(person, person));
    const group = createGroup();
    group.addWritten(writer, 1, { committed: done });
    return group.isAtomic;
  };
  expect(written(ONE, ONE)).toBe(false);
  expect(written(ONE, OTHER)).toBe(true);
});

test('a batch with one operation that has its order is not free of order, with any others behind it', () => {
  const identify: Operation = {
    type: 'person.identify',
    environmentId: 1,
    receivedAtMs: 1,
    mayCreate: true,
    person: { kind: 'id', value: ONE },
    attributes: { email: 'one@example.com' },
  };
  const group = createGroup(1);
  group.add([identify], 1, done);
  group.add([event(ONE, '1')], 1, done);
  group.add([event(ONE, '2'), event(OTHER, '3')], 1, done);
  const [batch] = finish(group);
  expect(batch?.isOrderFree).toBe(false);
  expect(batch?.operations.map(shardKeyOf)).toEqual([ONE, ONE, ONE, OTHER]);
  expect(batch?.keys).toEqual(
    new Set([ONE, OTHER, 'one@example.com'].map((key) => keyHashOf(1, key))),
  );
});
