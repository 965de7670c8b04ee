/** The time of a turn of the event loop. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { TurnClock } from '../src/turn-clock.ts';

test('a turn has one time, the next turn another, and a forgotten time is read anew', async () => {
  let nowMs = 1_000;
  const clock = new TurnClock(() => nowMs++);
  expect([clock.now(), clock.now()]).toEqual([1_000, 1_000]);
  clock.forget();
  expect([clock.now(), clock.now()]).toEqual([1_001, 1_001]);
  await turn();
  expect([clock.now(), clock.now()]).toEqual([1_002, 1_002]);
});
