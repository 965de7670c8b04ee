/** Age of a replica, from positions in the log and one clock. */
import type { LogPosition } from '@sluice/database/connection/read-replica';
import { beforeEach, expect, test } from 'vitest';
import { ReplicaWatch } from '../../src/serving/replica-watch.ts';

const BOUND_MS = 1_000;

let nowMs: number;
let primary: LogPosition;
let replica: LogPosition;
let failure: Error | undefined;
let told: string[];
let watch: ReplicaWatch;

const at = (
  position: bigint | undefined,
  clusterId = 'c',
  databaseId = 'd',
  timeline = 1,
): LogPosition => ({ clusterId, databaseId, timeline, position });

beforeEach(() => {
  nowMs = 10_000;
  primary = at(100n);
  replica = at(100n);
  failure = undefined;
  told = [];
  watch = new ReplicaWatch({
    stalenessMsMax: BOUND_MS,
    readPrimaryPosition: async () => primary,
    readReplicaPosition: () => (failure ? Promise.reject(failure) : Promise.resolve(replica)),
    monotonicNow: () => nowMs,
    logger: {
      info: (_: object, line: string) => void told.push(line),
      warn: (_: object, line: string) => void told.push(line),
    } as never,
  });
});

async function lookAfter(durationMs: number): Promise<boolean> {
  nowMs += durationMs;
  await watch.look();
  return watch.isFresh();
}

test('a replica is not read before it was asked, and is once it has all', async () => {
  expect(watch.isFresh()).toBe(false);
  expect(await lookAfter(0)).toBe(true);
});

test('a primary without changes does not look like a lagging replica', async () => {
  for (let looks = 0; looks < 20; looks++) expect(await lookAfter(BOUND_MS)).toBe(true);
});

test('the known state gets older until the replica has the earlier position of the primary', async () => {
  await watch.look();
  primary = at(200n);
  expect(await lookAfter(400)).toBe(true);
  expect(await lookAfter(400)).toBe(true);
  // All before the first look is there, and that is longer ago than the bound.
  expect(await lookAfter(400)).toBe(false);
  replica = at(199n);
  expect(await lookAfter(100)).toBe(false);
  // It has the primary's log up to the look before this one, and not up to this one.
  replica = at(200n);
  primary = at(300n);
  nowMs += 100;
  await watch.look();
  expect(watch.describe()).toBe('is read: at most 100 ms behind');
});

test('the age counts from the question to the primary, not from the arrival at the replica', async () => {
  primary = at(200n);
  await watch.look();
  primary = at(300n);
  await lookAfter(2_000);
  // It reaches the first position two seconds late.
  replica = at(250n);
  expect(await lookAfter(0)).toBe(false);
});

test('one that does not answer is not read until it has answered again', async () => {
  await watch.look();
  failure = new Error('Connection terminated');
  expect(await lookAfter(10)).toBe(false);
  failure = undefined;
  expect(await lookAfter(10)).toBe(true);
  watch.noticeFailure(new Error('a statement failed'));
  expect(watch.isFresh()).toBe(false);
  expect(watch.describe()).toBe('is not read: a statement failed');
  expect(await lookAfter(10)).toBe(true);
});

test('after a failover a replica that the new primary left behind is not read, however far its position is', async () => {
  replica = at(110n);
  expect(await lookAfter(0)).toBe(true);
  primary = at(100n, 'c', 'd', 2);
  expect(await lookAfter(10)).toBe(false);
  expect(watch.describe()).toBe(
    'is not read: the replica has applied timeline 1 of the log, and the primary writes timeline 2',
  );
  replica = at(100n, 'c', 'd', 2);
  expect(await lookAfter(10)).toBe(true);
});

test.each([
  [at(undefined), 'leads to no streaming replica'],
  [at(100n, 'another'), 'leads to a replica of another database'],
  [at(100n, 'c', 'another'), 'leads to a replica of another database'],
])(
  'a server that is not a replica of the primary is not read, and the log reports it once: %o',
  async (found, why) => {
    replica = found;
    for (let looks = 0; looks < 3; looks++) expect(await lookAfter(10)).toBe(false);
    expect(told).toEqual([expect.stringContaining(why)]);
  },
);
