/** HTTP as bytes, for requests that no client library would send. */
import { connect, type Socket } from 'node:net';
import { TickClock } from '@sluice/platform/testing/tick-clock';
import { expect } from 'vitest';

export interface RawAnswer {
  /** Undefined if the connection ended without one. */
  readonly status: number | undefined;
  readonly text: string;
  readonly isClosed: boolean;
}

export interface RawConnection {
  readonly socket: Socket;
  write(bytes: string | Uint8Array): void;
  /** All that came so far. */
  text(): string;
  /** Resolves with the first whole answer, or the received part once the connection ends. */
  answer(): Promise<RawAnswer>;
  destroy(): void;
}

export function openRaw(port: number): RawConnection {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  let isClosed = false;
  const listeners: (() => void)[] = [];
  const changed = () => {
    for (const listener of listeners) listener();
  };
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part;
    changed();
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
    changed();
  });
  const isWhole = (): boolean => {
    const head = text.indexOf('\r\n\r\n');
    if (head < 0) return false;
    const length = /content-length: (\d+)/i.exec(text.slice(0, head));
    return text.length >= head + 4 + Number(length?.[1] ?? 0);
  };
  return {
    socket,
    write: (bytes) => void socket.write(bytes),
    text: () => text,
    answer: () =>
      new Promise((resolve) => {
        const check = () => {
          if (!isWhole() && !isClosed) return;
          const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1];
          resolve({ status: status === undefined ? undefined : Number(status), text, isClosed });
        };
        listeners.push(check);
        check();
      }),
    destroy: () => void socket.destroy(),
  };
}

/**
 * In ticks, for an intake in this process: its timers stand still with it.
 *
 * @param name - of the connection, in the error.
 * @param tickMs - intake's own, if it counts ticks (`silent-connections.ts`).
 */
export async function untilClosed(
  { socket }: RawConnection,
  msMax = 5_000,
  name = '',
  tickMs = 20,
): Promise<void> {
  await TickClock.pass(tickMs, msMax, () => socket.closed);
  expect(socket.closed, name).toBe(true);
}
