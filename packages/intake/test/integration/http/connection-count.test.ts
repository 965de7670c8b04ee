/** As many connections as a process may have. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startIntakeUnderTest, type IntakeUnderTest } from '../support/intake-under-test.ts';

const TIMEOUT = { timeout: 60_000, interval: 20 };
const COUNT_MAX = 5;

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest(undefined, {}, COUNT_MAX);
});
afterAll(() => intake.close());

/** A connection with an answer; undefined if it was cut. */
async function open(): Promise<Socket | undefined> {
  const socket = connect(intake.port, '127.0.0.1');
  socket.on('error', () => undefined);
  const first = Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
  await first;
  return socket.destroyed ? undefined : socket;
}

// A process without a free file tried to take the waiting connection without end, and its own files could not be opened.
test('connections beyond the maximum are cut, and one that ends makes room for another', async () => {
  const held = await Promise.all(Array.from({ length: COUNT_MAX }, open));
  expect(held).not.toContain(undefined);
  expect(await open()).toBeUndefined();
  expect(intake.cuts.counts.get('too_many_connections')).toBe(1);
  expect(intake.cuts.takeSummary()?.last).toEqual({
    reason: 'too_many_connections',
    address: '127.0.0.1',
  });
  held[0]?.destroy();
  await vi.waitFor(async () => expect(await open()).toBeDefined(), TIMEOUT);
  expect(await open()).toBeUndefined();
  for (const socket of held) socket?.destroy();
});
