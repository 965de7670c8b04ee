import type { Envelope, IdentifyObject, TrackEvent } from '@sluice/domain/operation';
import { shardKeyOf, shardOf } from '@sluice/domain/shard';
import { envelopeText, type WrittenEnvelope } from '@sluice/platform/envelope-writer';
import type { ShardEnvelope } from '@sluice/platform/queue';
import { describe, expect, test } from 'vitest';
import { Batcher, type BatcherOptions, type CommitOutcome } from '../src/batcher.ts';
import type { CommittedTo } from '../src/commit-envelopes.ts';
import { operationsIn } from './operations-in.ts';

function event(person: string, eventId: string, receivedAtMs = 1): TrackEvent {
  return {
    type: 'event.track',
    kind: 'event',
    environmentId: 1,
    receivedAtMs,
    person: { kind: 'id', value: person },
    eventId,
    name: 'n',
    data: {},
    occurredAtMs: 1,
  };
}

/** A broker whose confirmations the test gives out. */
function createBroker() {
  const flushes: {
    envelopes: readonly ShardEnvelope[];
    arrivedAtMs: number;
    confirm: (committedTo?: CommittedTo) => void;
    fail: () => void;
  }[] = [];
  const arrivals: (() => void)[] = [];
  return {
    flushes,
    commit: (envelopes: readonly ShardEnvelope[], _isAtomic: boolean, arrivedAtMs: number) =>
      new Promise<CommittedTo>((resolve, reject) => {
        // What is in the spill is not overwritten, so that the tests can look at it later.
        const confirm = (committedTo: CommittedTo = 'spill') => resolve(committedTo);
        const fail = () => reject(new Error('away'));
        flushes.push({ envelopes, arrivedAtMs, confirm, fail });
        arrivals.shift()?.();
      }),
    arrival: () => new Promise<void>((resolve) => arrivals.push(resolve)),
  };
}

function createBatcher(overrides: Partial<BatcherOptions>): Batcher {
  let id = 0;
  return new Batcher({
    shardCount: 4,
    commit: () => Promise.resolve('spill'),
    newId: () => `envelope-${id++}`,
    pendingSizeBytesMax: 1_000_000,
    onCommitFailure: () => undefined,
    ...overrides,
  });
}

const eventIds = (envelopes: readonly ShardEnvelope[]): string[] =>
  operationsIn(envelopes).map((operation) => (operation as TrackEvent).eventId);

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

  test('one flush is in flight; what arrives meanwhile is the next one, whole and in order', async () => {
    const broker = createBroker();
    const batcher = createBatcher({ commit: broker.commit });
    let arrival = broker.arrival();
    batcher.add([event('a', '0')], 10, () => undefined);
    await arrival;
    for (let n = 1; n <= 5; n++) batcher.add([event('a', String(n))], 10, () => undefined);
    expect(broker.flushes).toHaveLength(1);
    arrival = broker.arrival();
    broker.flushes[0]?.confirm();
    await arrival;
    expect(eventIds(broker.flushes[1]?.envelopes ?? [])).toEqual(['1', '2', '3', '4', '5']);
    broker.flushes[1]?.confirm();
    await batcher.drain();
    expect(broker.flushes).toHaveLength(2);
  });

  test('a flush says when its oldest call arrived, also of those that waited for the one before', async () => {
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
    const envelopes = broker.flushes[0]?.envelopes ?? [];
    expect(eventIds(envelopes)).toHaveLength(50);
    for (const envelope of envelopes) {
      for (const operation of operationsIn([envelope]))
        expect(shardOf(1, shardKeyOf(operation), 4)).toBe(envelope.shard);
    }
    broker.flushes[0]?.confirm();
    await batcher.drain();
  });

  test('what is about an object waits on the shards of the people in it too', async () => {
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
    const envelopes = broker.flushes[0]?.envelopes ?? [];
    expect(new Map(envelopes.map((each) => [each.shard, operationsIn([each])]))).toEqual(
      new Map([
        [shardOf(1, 'object:1:acme', 256), [{ ...group, isHalf: true }]],
        [
          shardOf(1, 'u1', 256),
          [expect.objectContaining({ type: 'person.relationships', person, isHalf: true })],
        ],
      ]),
    );
    broker.flushes[0]?.confirm();
    await batcher.drain();
  });

  test('a flush is one transaction where a call in it spans shards, and only there', async () => {
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

  test('an envelope holds at most 1,000 operations, and keeps their order across envelopes', async () => {
    const committed: ShardEnvelope[] = [];
    const batcher = createBatcher({
      commit: (envelopes) => {
        committed.push(...envelopes);
        return Promise.resolve('spill');
      },
    });
    batcher.add(
      Array.from({ length: 2_500 }, (_, n) => event('a', String(n))),
      10,
      () => undefined,
    );
    await batcher.drain();
    expect(committed.map((envelope) => operationsIn([envelope]).length)).toEqual([
      1_000, 1_000, 500,
    ]);
    expect(eventIds(committed)).toEqual(Array.from({ length: 2_500 }, (_, n) => String(n)));
    expect(new Set(committed.map(({ envelope }) => envelope.id)).size).toBe(3);
  });

  test('calls that are more than a flush may hold go in the next one, each whole and in order', async () => {
    const broker = createBroker();
    const batcher = createBatcher({ commit: broker.commit, pendingSizeBytesMax: 100_000_000 });
    const megabytes = (count: number) => count * 1_048_576;
    let arrival = broker.arrival();
    batcher.add([event('a', '0')], megabytes(3), () => undefined);
    batcher.add([event('a', '1')], megabytes(1), () => undefined);
    batcher.add([event('a', '2'), event('b', '3')], megabytes(5), () => undefined);
    batcher.add([event('a', '4')], 1, () => undefined);
    await arrival;
    for (const flush of [0, 1]) {
      arrival = broker.arrival();
      broker.flushes[flush]?.confirm();
      await arrival;
    }
    broker.flushes[2]?.confirm();
    await batcher.drain();
    expect(broker.flushes.map(({ envelopes }) => eventIds(envelopes).toSorted())).toEqual([
      ['0', '1'],
      ['2', '3'],
      ['4'],
    ]);
    expect(batcher.pendingSizeBytes).toBe(0);
  });

  test('an envelope goes on in the trace that its operations belong to', async () => {
    const committed: ShardEnvelope[] = [];
    const traced = event('a', '1');
    const elsewhere = ['b', 'c', 'd', 'e', 'f'].find(
      (p) => shardOf(1, p, 4) !== shardOf(1, 'a', 4),
    )!;
    const ended: CommitOutcome[] = [];
    const batcher = createBatcher({
      commit: (envelopes) => {
        committed.push(...envelopes);
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
    const envelopes = committed.map(
      ({ envelope }) => JSON.parse(envelopeText(envelope)) as Envelope,
    );
    const trace = (eventId: string) =>
      envelopes.find(({ operations }) => (operations[0] as TrackEvent).eventId === eventId);
    expect(trace('1')).toMatchObject({ operations: [traced], traceparent: '00-"a"-b-01' });
    expect(trace('2')).not.toHaveProperty('traceparent');
    expect(ended).toEqual(['committed']);
  });

  test('a flush that was not made durable is told to its callers, and the next one is tried', async () => {
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

  test('more than the pending limit is refused at once, and room comes back with the confirmation', async () => {
    const broker = createBroker();
    const batcher = createBatcher({ commit: broker.commit, pendingSizeBytesMax: 100 });
    const arrival = broker.arrival();
    expect(batcher.add([event('a', '1')], 80, () => undefined)).toBe(true);
    expect(batcher.add([event('a', '2')], 30, () => expect.unreachable())).toBe(false);
    await arrival;
    broker.flushes[0]?.confirm();
    await batcher.drain();
    expect(batcher.pendingSizeBytes).toBe(0);
    const second = broker.arrival();
    expect(batcher.add([event('a', '3')], 100, () => undefined)).toBe(true);
    await second;
    broker.flushes[1]?.confirm();
    await batcher.drain();
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

  test('what the broker has makes room for the next envelope; what is only in the spill is never overwritten', async () => {
    const broker = createBroker();
    const batcher = createBatcher({ commit: broker.commit });
    const flushOf = async (eventId: string, committedTo: CommittedTo) => {
      const arrival = broker.arrival();
      batcher.add([event('a', eventId)], 10, () => undefined);
      await arrival;
      const [{ envelope } = expect.unreachable()] = broker.flushes.at(-1)?.envelopes ?? [];
      broker.flushes.at(-1)?.confirm(committedTo);
      await batcher.drain();
      return (envelope as WrittenEnvelope).bytes;
    };
    const spilled = await flushOf('spilled', 'spill');
    const first = await flushOf('first', 'broker');
    const second = await flushOf('second', 'broker');
    await flushOf('third', 'broker');
    expect(second.buffer).toBe(first.buffer);
    expect(first.buffer).not.toBe(spilled.buffer);
    expect(spilled.toString()).toContain('"eventId":"spilled"');
  });

  test('what one call brought keeps its order on each shard, among calls before and after it', async () => {
    const committed: ShardEnvelope[] = [];
    const batcher = createBatcher({
      commit: (envelopes) => {
        committed.push(...envelopes);
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
      const ids = eventIds(committed.filter((envelope) => envelope.shard === shard)).map(Number);
      const expected = Array.from({ length: n }, (_, index) => index).filter(
        (index) => shardOf(1, people[index % people.length]!, 4) === shard,
      );
      expect(ids).toEqual(expected);
    }
    for (const envelope of committed)
      expect(operationsIn([envelope]).length).toBeLessThanOrEqual(1_000);
  });
});
