import { expect, test } from 'vitest';
import { sampleCalls } from '../src/live/sample-calls.ts';

const take = (seed: number, count: number, runId = 'run') => {
  const calls = sampleCalls(seed, 50, runId);
  return Array.from({ length: count }, () => calls.next().value);
};

test('the same seed gives the same calls, another one others', () => {
  expect(take(7, 200)).toEqual(take(7, 200));
  expect(take(7, 200)).not.toEqual(take(8, 200));
});

test('no message id comes twice, within a run or in the next', () => {
  const ids = [...take(1, 500, 'a'), ...take(1, 500, 'b')].map((call) => call?.body.messageId);
  expect(new Set(ids).size).toBe(1_000);
});

test('every kind of call comes, about people of the number asked for', () => {
  const calls = take(3, 1_000);
  expect(new Set(calls.map((call) => call?.type))).toEqual(new Set(['identify', 'track', 'page']));
  const people = new Set(calls.map((call) => call?.body.userId));
  expect(people.size).toBeGreaterThan(20);
  expect(people.size).toBeLessThanOrEqual(50);
});
