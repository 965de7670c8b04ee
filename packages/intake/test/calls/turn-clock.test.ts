import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createTurnClock } from '../../src/calls/turn-clock.ts';

test('the calls of a turn came at one time, those of the next at theirs', async () => {
  let nowMs = 1_000;
  const clock = createTurnClock(() => nowMs);
  expect(clock()).toBe(1_000);
  nowMs = 1_005;
  await Promise.resolve();
  expect(clock()).toBe(1_000);
  await setImmediate();
  expect(clock()).toBe(1_005);
  nowMs = 990;
  await setImmediate();
  expect(clock()).toBe(990);
});
