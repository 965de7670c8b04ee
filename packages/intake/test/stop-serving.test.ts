/** The end of intake beside a stall of its process. */
import { expect, test } from 'vitest';
import { stopServing } from '../src/stop-serving.ts';

const LOOK_MS = 10;
/** Longer than the quiet time, and shorter than the time for clients that go on. */
const STALL_MS = 2_500;

/** A server whose calls come at these looks; the looks during which the process stalls take longer. */
function serverWith(world: {
  readonly callsAtLooks: readonly number[];
  readonly stalledLook: number;
}) {
  let nowMs = 0;
  let look = 0;
  let receivedCount = 0;
  let closedAtLook: number | undefined;
  const stopped = stopServing({
    server: {
      stopListening: () => undefined,
      close: () => (closedAtLook = look),
      inFlightCount: () => 0,
      receivedCount: () => receivedCount,
    },
    bodiesMsMax: 60_000,
    drain: () => Promise.resolve(),
    pause: async () => {
      look++;
      nowMs += look === world.stalledLook ? STALL_MS : LOOK_MS;
      if (world.callsAtLooks.includes(look)) receivedCount++;
    },
    now: () => nowMs,
  });
  return stopped.then(() => closedAtLook);
}

test('after a stall, the calls that came meanwhile are read before the sockets are closed', async () => {
  expect(await serverWith({ callsAtLooks: [3], stalledLook: 2 })).toBe(33);
});

test('each call begins the quiet time again', async () => {
  expect(await serverWith({ callsAtLooks: [], stalledLook: 0 })).toBe(30);
  expect(await serverWith({ callsAtLooks: [20, 40], stalledLook: 0 })).toBe(70);
});
