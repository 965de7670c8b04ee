/**
 * Operations that were written early join a flush like others.
 *
 * The others are written when the flush goes.
 */
import type { Operation } from '@sluice/domain/operations/operation';
import { commitBatchText, CommitBatchBuffers } from '@sluice/platform/queue/commit-batch-writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RepeatedEventIds } from '../../src/groups/repeated-event-ids.ts';
import { CommitGroup } from '../../src/groups/commit-group.ts';
import { OperationWriter } from '../../src/groups/operation-writer.ts';

const people = fc.constantFrom('ann', 'bo', 'Zoë', '😀', 'eve');
const operations: fc.Arbitrary<Operation> = fc
  .record({ value: people, attribute: fc.string({ unit: 'grapheme' }), isVisitor: fc.boolean() })
  .map(({ value, attribute, isVisitor }) => ({
    type: 'person.identify',
    environmentId: 7,
    receivedAtMs: 1_000,
    mayCreate: true,
    person: { kind: isVisitor ? 'anonymous_id' : 'id', value },
    attributes: { attribute, email: `${value}@example.com` },
  }));

/** The commit batches of a flush of these calls, by shard. */
function flushOf(addAll: (group: CommitGroup) => void, keepsOperations: boolean) {
  let id = 0;
  const group = new CommitGroup(
    4,
    () => `id-${id++}`,
    new CommitBatchBuffers(),
    keepsOperations,
    new RepeatedEventIds(),
  );
  addAll(group);
  const parts = group.parts.map(({ shard, writer, places, operations: kept }) => {
    const written = writer.finish();
    const { operations: own } = JSON.parse(commitBatchText(written)) as { operations: unknown };
    return { shard, own, keys: written.keys.toSorted(), places, kept };
  });
  const { isAtomic, operationCount, sizeBytes, sizes, arrivedAtMs, callers } = group;
  return {
    parts: parts.toSorted((one, other) => one.shard - other.shard),
    ...{ isAtomic, operationCount, sizeBytes, sizes, arrivedAtMs, callerCount: callers.length },
  };
}

test('a flush is the same in both ways, for any calls', () => {
  const writer = new OperationWriter(true);
  const calls = fc.array(fc.array(operations, { minLength: 1, maxLength: 8 }), { maxLength: 5 });
  fc.assert(
    fc.property(calls, fc.boolean(), (all, keepsOperations) => {
      const done = () => undefined;
      const atOnce = flushOf((group) => {
        for (const call of all) group.add(call, 10, done);
      }, keepsOperations);
      const written = flushOf((group) => {
        for (const call of all) {
          writer.clear();
          for (const operation of call) writer.add(operation);
          group.addWritten(writer, 10, { committed: done });
        }
      }, keepsOperations);
      expect(written).toEqual(atOnce);
    }),
  );
});
