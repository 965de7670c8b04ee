/**
 * A batcher, a broker that the test controls, and events.
 *
 * The test gives out the broker's confirmations.
 */
import type { TrackEvent } from '@sluice/domain/operations/operation';
import type { ShardCommitBatch } from '@sluice/platform/queue/queue';
import { Batcher, type BatcherOptions } from '../../src/commit/batcher.ts';
import type { CommittedTo } from '../../src/commit/batch-committer.ts';
import { capacityOfOne } from './capacity-of-one.ts';
import { operationsIn } from './operations-in.ts';

export function event(person: string, eventId: string, receivedAtMs = 1): TrackEvent {
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
export function createBroker() {
  const flushes: {
    envelopes: readonly ShardCommitBatch[];
    arrivedAtMs: number;
    confirm: (committedTo?: CommittedTo) => void;
    fail: () => void;
  }[] = [];
  const arrivals: (() => void)[] = [];
  return {
    flushes,
    commit: (commitBatches: readonly ShardCommitBatch[], _isAtomic: boolean, arrivedAtMs: number) =>
      new Promise<CommittedTo>((resolve, reject) => {
        // Bytes in the disk buffer are not overwritten, so that the tests can look at them later.
        const confirm = (committedTo: CommittedTo = 'spill') => resolve(committedTo);
        const fail = () => reject(new Error('away'));
        flushes.push({ envelopes: commitBatches, arrivedAtMs, confirm, fail });
        arrivals.shift()?.();
      }),
    arrival: () => new Promise<void>((resolve) => arrivals.push(resolve)),
  };
}

export function createBatcher(overrides: Partial<BatcherOptions>): Batcher {
  let id = 0;
  return new Batcher({
    shardCount: 4,
    commit: () => Promise.resolve('spill'),
    newId: () => `envelope-${id++}`,
    pending: capacityOfOne(1_000_000),
    onCommitFailure: () => undefined,
    ...overrides,
  });
}

export const eventIds = (commitBatches: readonly ShardCommitBatch[]): string[] =>
  operationsIn(commitBatches).map((operation) => (operation as TrackEvent).eventId);
