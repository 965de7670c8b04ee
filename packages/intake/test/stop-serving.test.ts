/** The end of intake beside a stall of its process. */
import { expect, test } from 'vitest';
import { stopServing } from '../src/stop-serving.ts';

const LOOK_MS = 10;
/** Longer than the quiet time, and shorter than the time for clients that go on. */
const STALL_MS = 2_500;

/**
 * A server whose calls come at these looks. The stalled look takes longer: its timer is due before the process has read
 * the sockets.
 *
 * @returns the last look, and the calls that the server had read by then.
 */
async function serverWith(world: {
  readonly callsAtLooks: readonly number[];
  readonly stalledLook: number;
  readonly stallMs?: number;
}) {
  let nowMs = 0;
  let look = 0;
  let arrivedCount = 0;
  let receivedCount = 0;
  let closed: { readonly atLook: number; readonly receivedCount: number } | undefined;
  const readSockets = () => void (receivedCount = arrivedCount);
  await stopServing({
    server: {
      stopListening: () => undefined,
      close: () => (closed = { atLook: look, receivedCount }),
      inFlightCount: () => 0,
      receivedCount: () => receivedCount,
    },
    bodiesMsMax: 60_000,
    drain: () => Promise.resolve(),
    pause: async () => {
      readSockets();
      look++;
      nowMs += look === world.stalledLook ? (world.stallMs ?? STALL_MS) : LOOK_MS;
      if (world.callsAtLooks.includes(look)) arrivedCount++;
      if (look !== world.stalledLook) readSockets();
    },
    turn: async () => readSockets(),
    now: () => nowMs,
  });
  return closed;
}

test('after a stall, the calls that came meanwhile are read before the sockets are closed', async () => {
  expect(await serverWith({ callsAtLooks: [3], stalledLook: 2 })).toEqual({
    atLook: 33,
    receivedCount: 1,
  });
});

test('calls that came while the last look stalled are read, and begin the quiet time again', async () => {
  expect(await serverWith({ callsAtLooks: [30], stalledLook: 30 })).toEqual({
    atLook: 60,
    receivedCount: 1,
  });
});

test('a stall beyond the time for clients that go on is followed by one look more', async () => {
  expect(await serverWith({ callsAtLooks: [2, 3], stalledLook: 2, stallMs: 6_000 })).toEqual({
    atLook: 3,
    receivedCount: 2,
  });
});

test('each call begins the quiet time again', async () => {
  expect(await serverWith({ callsAtLooks: [], stalledLook: 0 })).toMatchObject({ atLook: 30 });
  expect(await serverWith({ callsAtLooks: [20, 40], stalledLook: 0 })).toMatchObject({
    atLook: 70,
  });
});
