/** An intake without connections sleeps: it looks for silent connections only while there are connections to watch. */
import { connect } from 'node:net';
import { once } from 'node:events';
import { expect, test, vi } from 'vitest';
import { SILENCE_TICK_MS } from '../../../src/connections/silent-connections.ts';
import { startIntakeUnderTest } from '../support/intake-under-test.ts';

const WAIT = { timeout: 60_000, interval: 10 };

test('the ticks of silent connections begin with a connection and end with it', async () => {
  const begun = vi.spyOn(globalThis, 'setInterval');
  const ended = vi.spyOn(globalThis, 'clearInterval');
  const ticksBegun = () =>
    begun.mock.results.filter((_, call) => begun.mock.calls[call]?.[1] === SILENCE_TICK_MS);
  const intake = await startIntakeUnderTest();
  try {
    expect(ticksBegun()).toEqual([]);
    for (let count = 1; count <= 2; count++) {
      const socket = connect(intake.port, '127.0.0.1');
      await once(socket, 'connect');
      await vi.waitFor(() => expect(ticksBegun()).toHaveLength(count), WAIT);
      socket.destroy();
      const timer = ticksBegun().at(-1)?.value as unknown;
      await vi.waitFor(() => expect(ended.mock.calls).toContainEqual([timer]), WAIT);
    }
  } finally {
    await intake.close();
    begun.mockRestore();
    ended.mockRestore();
  }
});
