import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { IdentifyObject, TrackEvent } from '@sluice/domain/operations/operation';
import { keyHashOf, shardKeyOf, shardOf } from '@sluice/domain/operations/shard';
import { commitBatchText } from '@sluice/platform/queue/commit-batch-writer';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { describe, expect, test } from 'vitest';
import type { CommitOutcome } from '../../src/commit/batcher.ts';
import { createBatcher, createBroker, event, eventIds } from '../support/batcher-under-test.ts';
import { operationsIn } from '../support/operations-in.ts';

describe('group commit', () => {
  test('a call is answered only after the broker has confirmed it', async () => {
    const broker = createBroker();
    const batcher = createBatcher({ commit: broker.commit });
    const answers: CommitOutcome[] = [];
    const arrival = broker.arrival();
    batcher.add([event('a', '1')], 10, (outcome) => answers.push(outcome));
    await arrival;
    expect(answers).toEqual([]);
    broker.flushes[0]?.confirm();
    await batcher.drain();
    expect(answers).toEqual(['committed']);
  });

  test('one flush is in flight; calls that arrive meanwhile are the next one, and are answered, in order', async () => {
    const broker = createBroker();
    const batcher = createBatcher({ commit: broker.commit });
    let arrival = broker.arrival();
    batcher.add([event('a', '0')], 10, () => undefined);
    await arrival;
    const answered: number[] = [];
    for (let n = 1; n <= 5; n++) batcher.add([event('a', String(n))], 10, () => answered.push(n));
    expect(broker.flushes).toHaveLength(1);
    arrival = broker.arrival();
    broker.flushes[0]?.confirm();
    await arrival;
    expect(eventIds(broker.flushes[1]?.envelopes ?? [])).toEqual(['1', '2', '3', '4', '5']);
    broker.flushes[1]?.confirm();
    await batcher.drain();
    expect(broker.flushes).toHaveLength(2);
    expect(answered).toEqual([1, 2, 3, 4, 5]);
  });

  test('callers are answered once the next flush is on its way, and at once if no call waits', async () => {
    const broker = createBroker();
    const order: string[] = [];
    const batcher = createBatcher({
      commit: (commitBatches, isAtomic, arrivedAtMs) => {
        order.push('flush');
        return broker.commit(commitBatches, isAtomic, arrivedAtMs);
      },
      onCommitted: () => order.push('committed'),
    });
    let arrival = broker.arrival();
    batcher.add([event('a', '0')], 10, () => order.push('answer'));
    await arrival;
    batcher.add([event('a', '1')], 10, () => order.push('answer'));
    arrival = broker.arrival();
    broker.flushes[0]?.confirm();
    await arrival;
    await new Promise(setImmediate);
    expect(order).toEqual(['flush', 'flush', 'committed', 'answer']);
    setImmediate(() => order.push('turn'));
    broker.flushes[1]?.confirm();
    await new Promise(setImmediate);
    expect(order.slice(4)).toEqual(['committed', 'answer', 'turn']);
  });

  test('a flush carries the arrival time of its oldest call, also if calls waited for the flush before', async () => {
    const broker = createBroker();
    const batcher = createBatcher({ commit: broker.commit });
    let arrival = broker.arrival();
    batcher.add([event('a', '0', 100)], 10, () => undefined);
    await arrival;
    // A stream adds a group whose first line is older than a call that came meanwhile.
    batcher.add([event('a', '1', 220)], 10, () => undefined);
    batcher.add([event('b', '2', 210), event('b', '3', 230)], 10, () => undefined);
    batcher.add([event('a', '4', 225)], 10, () => undefined);
    arrival = broker.arrival();
    broker.flushes[0]?.confirm();
    await arrival;
    expect(broker.flushes.map(({ arrivedAtMs }) => arrivedAtMs)).toEqual([100, 210]);
    broker.flushes[1]?.confirm();
    await batcher.drain();
  });

  test('everything that one call brought is in one transaction, each operation on its person’s shard', async () => {
    const broker = createBroker();
    const batcher = createBatcher({ commit: broker.commit });
    const operations = Array.from({ length: 50 }, (_, n) => event(`person-${n}`, String(n)));
    const arrival = broker.arrival();
    batcher.add(operations, 10, () => undefined);
    await arrival;
    const commitBatches = broker.flushes[0]?.envelopes ?? [];
    expect(eventIds(commitBatches)).toHaveLength(50);
    for (const commitBatch of commitBatches) {
      for (const operation of operationsIn([commitBatch]))
        expect(shardOf(1, shardKeyOf(operation), 4)).toBe(commitBatch.shard);
    }
    broker.flushes[0]?.confirm();
    await batcher.drain();
  });

  test('an operation goes to one shard whole, and its batch has the keys of all that it names', async () => {
    const broker = createBroker();
    const batcher = createBatcher({ commit: broker.commit, shardCount: 256 });
    const arrival = broker.arrival();
    const person = { kind: 'id', value: 'u1' } as const;
    const object = { objectTypeId: 1, objectId: 'acme' };
    const group: IdentifyObject = {
      type: 'object.identify',
      environmentId: 1,
      receivedAtMs: 1,
      object,
      attributes: {},
      relationships: [{ person, attributes: {} }],
    };
    batcher.add([group], 10, () => undefined);
    await arrival;
    const commitBatches = broker.flushes[0]?.envelopes ?? [];
    expect(commitBatches.map((each) => [each.shard, operationsIn([each])])).toEqual([
      [shardOf(1, 'object:1:acme', 256), [group]],
    ]);
    const [batch] = commitBatches;
    const keys = batch && 'keys' in batch.envelope ? [...batch.envelope.keys] : [];
    expect(new Set(keys)).toEqual(new Set([keyHashOf(1, 'object:1:acme'), keyHashOf(1, 'u1')]));
    broker.flushes[0]?.confirm();
    await batcher.drain();
  });

  test('a flush is one transaction only if a call in it spans shards', async () => {
    const flushes: boolean[] = [];
    const batcher = createBatcher({
      commit: (_, isAtomic) => {
        flushes.push(isAtomic);
        return Promise.resolve('spill');
      },
    });
    for (let n = 0; n < 20; n++)
      batcher.add([event(`person-${n}`, String(n))], 10, () => undefined);
    await batcher.drain();
    batcher.add(
      Array.from({ length: 20 }, (_, n) => event(`person-${n}`, String(n))),
      10,
      () => undefined,
    );
    await batcher.drain();
    expect(flushes).toEqual([false, true]);
  });

  test('a commit batch goes on in the trace that its operations belong to', async () => {
    const committed: ShardCommitBatch[] = [];
    const traced = event('a', '1');
    const elsewhere = ['b', 'c', 'd', 'e', 'f'].find(
      (p) => shardOf(1, p, 4) !== shardOf(1, 'a', 4),
    )!;
    const ended: CommitOutcome[] = [];
    const batcher = createBatcher({
      commit: (commitBatches) => {
        committed.push(...commitBatches);
        return Promise.resolve('spill');
      },
      traceFlush: (drafts) => {
        const found = drafts.filter(({ operations }) => operations.includes(traced));
        const traceparents = new Map(found.map(({ id }) => [id, '00-"a"-b-01']));
        return { traceparents, end: (outcome) => void ended.push(outcome) };
      },
    });
    batcher.add([traced, event(elsewhere, '2')], 10, () => undefined);
    await batcher.drain();
    const commitBatches = committed.map(
      ({ envelope: commitBatch }) => JSON.parse(commitBatchText(commitBatch)) as CommitBatch,
    );
    const trace = (eventId: string) =>
      commitBatches.find(({ operations }) => (operations[0] as TrackEvent).eventId === eventId);
    expect(trace('1')).toMatchObject({ operations: [traced], traceparent: '00-"a"-b-01' });
    expect(trace('2')).not.toHaveProperty('traceparent');
    expect(ended).toEqual(['committed']);
  });

  test('the callers of a flush that fails are answered as unavailable, and the next flush is tried', async () => {
    const answers: CommitOutcome[] = [];
    let commitCount = 0;
    const batcher = createBatcher({
      commit: () =>
        commitCount++ === 0 ? Promise.reject(new Error('no room')) : Promise.resolve('broker'),
    });
    batcher.add([event('a', '1')], 10, (outcome) => answers.push(outcome));
    await batcher.drain();
    batcher.add([event('a', '1')], 10, (outcome) => answers.push(outcome));
    await batcher.drain();
    expect(answers).toEqual(['unavailable', 'committed']);
  });

  test('a call that comes while the last callers are being answered is not forgotten', async () => {
    const answers: string[] = [];
    const batcher = createBatcher({});
    batcher.add([event('a', '1')], 10, () => {
      answers.push('first');
      batcher.add([event('a', '2')], 10, () => answers.push('second'));
    });
    await batcher.drain();
    expect(answers).toEqual(['first', 'second']);
  });

  test('the operations of a call keep their order on each shard, among the calls before and after it', async () => {
    const committed: ShardCommitBatch[] = [];
    const batcher = createBatcher({
      commit: (commitBatches) => {
        committed.push(...commitBatches);
        return Promise.resolve('spill');
      },
    });
    const people = ['a', 'b', 'c', 'd', 'e'];
    let n = 0;
    const some = (count: number) =>
      Array.from({ length: count }, () => event(people[n % people.length]!, String(n++)));
    for (const count of [1, 7, 1, 1_200, 1, 1_999, 2])
      batcher.add(some(count), 10, () => undefined);
    await batcher.drain();
    for (let shard = 0; shard < 4; shard++) {
      const ids = eventIds(committed.filter((commitBatch) => commitBatch.shard === shard)).map(
        Number,
      );
      const expected = Array.from({ length: n }, (_, index) => index).filter(
        (index) => shardOf(1, people[index % people.length]!, 4) === shard,
      );
      expect(ids).toEqual(expected);
    }
    for (const commitBatch of committed)
      expect(operationsIn([commitBatch]).length).toBeLessThanOrEqual(1_000);
  });
});
