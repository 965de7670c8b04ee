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
function createUnsubscribe(
  listWorkspacesOfDelivery: DeliveryLookup['listWorkspacesOfDelivery'],
  pause: () => Promise<void> = () => Promise.resolve(),
) {
  const committed: Operation[] = [];
  const pauses: number[] = [];
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
    {
      listWorkspacesOfDelivery,
      hasDelivery: () => Promise.resolve(false),
      pause: (durationMs) => {
        pauses.push(durationMs);
        return pause();
      },
    },
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
  return { send, committed, pauses };
}

const WAIT_MS_MAX = 60_000;
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

describe('an unsubscription for a delivery that no workspace knows yet', () => {
  // The metric was acknowledged, and no worker had processed it: the click was refused and lost.
  test('is taken once the first metric of the message is processed', async () => {
    const answers = [[], [], [3]];
    const { send, committed } = createUnsubscribe(() => Promise.resolve(answers.shift() ?? []));
    expect(await send()).toEqual({ outcome: 'accepted' });
    expect(committed).toMatchObject([{ type: 'delivery.unsubscribe', environmentId: 3 }]);
  });

  test('is refused after a second, with any number of looks', async () => {
    const { send, pauses } = createUnsubscribe(() => Promise.resolve([]));
    expect(await send()).toMatchObject({ outcome: 'rejected' });
    expect(pauses.reduce((sum, each) => sum + each, 0)).toBe(1_000);
  });

  test('is not looked up again after its deadline', async () => {
    vi.useFakeTimers();
    let lookCount = 0;
    const { send } = createUnsubscribe(async () => {
      lookCount++;
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      return [];
    });
    const answer = send();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await answer).toEqual(OVERLOADED);
    expect(lookCount).toBe(2);
  });

  // A one-click sender does not repeat a call that is refused with 400.
  test('is asked to come again while too many others are looked up', async () => {
    let release = (): void => undefined;
    const pausing = new Promise<void>((resolve) => (release = resolve));
    let lookCount = 0;
    const { send, pauses } = createUnsubscribe(
      () => (++lookCount === 1 ? Promise.resolve([]) : new Promise(() => undefined)),
      () => pausing,
    );
    const answer = send();
    await vi.waitUntil(() => pauses.length === 1, WAIT_MS_MAX);
    for (let n = 0; n < 100; n++) void send();
    release();
    expect(await answer).toEqual(OVERLOADED);
    expect(lookCount).toBe(101);
  });

  test('is refused at once beside a hundred others that wait', async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const { send, pauses } = createUnsubscribe(
      () => Promise.resolve([]),
      () => gate,
    );
    const waiting = Array.from({ length: 100 }, send);
    await vi.waitUntil(() => pauses.length === 100, WAIT_MS_MAX);
    expect(await send()).toMatchObject({ outcome: 'rejected' });
    expect(pauses).toHaveLength(100);
    release();
    await Promise.all(waiting);
  });
});
