/**
 * Times that intakes give to calls on their disks: in the order of the answers, with any knowledge of the broker's
 * clock.
 */
import { beforeEach, expect, test } from 'vitest';
import { BrokerClock } from '../../src/commit/broker-clock.ts';

const AHEAD_MS = 1_000_000;

let nowMs: number;
/** How long each reading takes to the broker, and back. */
let ways: (readonly [toMs: number, backMs: number])[];
let aheadMs: number;

const open = (): BrokerClock =>
  new BrokerClock({
    monotonicNow: () => nowMs,
    readClock() {
      const [toMs, backMs] = ways.shift() ?? [5, 5];
      const brokerMs = nowMs + toMs + aheadMs;
      nowMs += toMs + backMs;
      return Promise.resolve(brokerMs);
    },
  });

beforeEach(() => {
  nowMs = 5_000;
  ways = [];
  aheadMs = AHEAD_MS;
});

test('the time of the broker is unknown before its first answer, and calls do not wait for it', () => {
  const clock = open();
  expect(clock.latest()).toBeUndefined();
  expect(clock.waitMs()).toBe(0);
});

test('the quickest of several readings counts, until drift has made it the worse one', async () => {
  const clock = open();
  ways = [
    [50, 50],
    [0.5, 0.5],
  ];
  await clock.measure();
  expect(clock.latest()).toBeCloseTo(nowMs + AHEAD_MS + 0.5, 1);
  nowMs += 1_000_000;
  // Now it may be 50 ms wrong.
  clock.noticeAnswer(nowMs - 10 + AHEAD_MS, nowMs - 20, nowMs);
  expect(clock.latest()).toBeCloseTo(nowMs + AHEAD_MS + 10, 1);
});

test('a server that takes the place of another has a clock of its own', async () => {
  const clock = open();
  await clock.measure();
  aheadMs += 60_000;
  await clock.measure();
  expect(clock.latest()).toBeCloseTo(nowMs + aheadMs + 5, 1);
  aheadMs -= 120_000;
  await clock.measure();
  expect(clock.latest()).toBeCloseTo(nowMs + aheadMs + 5, 1);
});

test('a better reading does not make a later call earlier', async () => {
  const clock = open();
  await clock.measure();
  const before = clock.latest();
  clock.noticeAnswer(nowMs + AHEAD_MS, nowMs, nowMs);
  expect(clock.latest()).toBe(before);
});

test.each([
  ['both readings symmetric', [3, 3], [3, 3]],
  ['one all on the way there, one all on the way back', [9, 0], [0, 2]],
  ['the other way round', [0, 2], [9, 0]],
] as const)(
  'a call after an answer has a later time at another intake: %s',
  async (_, one, other) => {
    const [first, second] = [open(), open()];
    ways = Array.from({ length: 8 }, () => one);
    await first.measure();
    ways = Array.from({ length: 8 }, () => other);
    await second.measure();
    for (let round = 0; round < 20; round++) {
      const [taking, next] = round % 2 === 0 ? [first, second] : [second, first];
      const atMs = taking.latest() as number;
      nowMs += taking.waitMs();
      // The answer is there.
      expect(next.latest()).toBeGreaterThanOrEqual(atMs);
      nowMs += next.waitMs() + 1;
    }
  },
);

test('after a long outage no call waits for all that the clock may have drifted', async () => {
  const clock = open();
  await clock.measure();
  nowMs += 86_400_000;
  clock.latest();
  expect(clock.waitMs()).toBe(20);
});
