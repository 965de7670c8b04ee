import type { Operation } from '@sluice/domain/operations/operation';
import { capacityOfOne } from '../support/capacity-of-one.ts';

import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Outcome } from '../../src/calls/outcome.ts';
import type { Submission } from '../../src/calls/accept.ts';
import { createAccept, type DeliveryLookup } from '../../src/calls/accept-unsubscribe.ts';
import { KeyRing } from '../../src/auth/authenticate.ts';
import { Batcher } from '../../src/commit/batcher.ts';
import { routes } from '../../src/calls/calls.ts';
import { readBody } from '../../src/calls/read-body.ts';
import { operationsIn } from '../support/operations-in.ts';

afterEach(() => void vi.useRealTimers());

const call = routes.find(({ pattern }) => pattern === '/unsubscribe/:delivery')!.call;

/** The use case over a Postgres of the test's own. */
function createUnsubscribe(listWorkspacesOfDelivery: DeliveryLookup['listWorkspacesOfDelivery']) {
  const committed: Operation[] = [];
  const batcher = new Batcher({
    shardCount: 1,
    commit: (commitBatches) => {
      committed.push(...operationsIn(commitBatches));
      return Promise.resolve('broker');
    },
    newId: () => 'envelope',
    pending: capacityOfOne(1_000_000),
    onCommitFailure: () => undefined,
  });
  const accept = createAccept(
    {
      keys: new KeyRing(),
      batcher,
      rateLimiter: undefined,
      recordUnauthorized: () => undefined,
      retryAfterSeconds: () => 1,
      now: () => 1_000,
      newId: () => 'event',
    },
    { listWorkspacesOfDelivery, hasDelivery: () => Promise.resolve(false) },
  );
  const submission: Submission = {
    call,
    authorization: '',
    isStrict: false,
    mayUseDemo: () => false,
    body: readBody(new Uint8Array(Buffer.from('{"unsubscribe":true}')), undefined),
    parameters: ['delivery'],
  };
  const send = () => new Promise<Outcome>((resolve) => void accept(submission, resolve));
  return { send, committed };
}

const OVERLOADED = { outcome: 'overloaded', retryAfterSeconds: 1 };

describe('an unsubscription whose workspace cannot be looked up', () => {
  test('is never answered as accepted or as unknown while Postgres is away', async () => {
    const { send, committed } = createUnsubscribe(() => Promise.reject(new Error('away')));
    expect(await send()).toEqual(OVERLOADED);
    expect(committed).toEqual([]);
  });

  test('is answered within the deadline when Postgres hangs', async () => {
    vi.useFakeTimers();
    const { send } = createUnsubscribe(() => new Promise(() => undefined));
    const answer = send();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await answer).toEqual(OVERLOADED);
  });

  test('waits with a hundred others at most, and is taken once they are through', async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    let lookupCount = 0;
    const { send, committed } = createUnsubscribe(async () => {
      lookupCount++;
      await gate;
      return [3];
    });
    const waiting = Array.from({ length: 100 }, send);
    expect(await send()).toEqual(OVERLOADED);
    expect(lookupCount).toBe(100);
    release();
    expect(new Set((await Promise.all(waiting)).map(({ outcome }) => outcome))).toEqual(
      new Set(['accepted']),
    );
    expect(await send()).toEqual({ outcome: 'accepted' });
    expect(committed).toHaveLength(101);
    expect(committed[0]).toMatchObject({ type: 'delivery.unsubscribe', environmentId: 3 });
  });
});
