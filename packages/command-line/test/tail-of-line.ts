/** The live tail of a server that sends one line. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { connectApi } from '../src/connection/api-client.ts';
import { tail } from '../src/live/tail.ts';
import type { Terminal } from '../src/output/terminal.ts';

/** @returns writes the line to a terminal, as `sluice tail` does. */
export async function tailOfLine(line: object): Promise<(terminal: Terminal) => Promise<unknown>> {
  const server = createServer((_, response) => {
    response.end(`event: received\ndata: ${JSON.stringify(line)}\n\n`);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return (terminal) => {
    const stopping = new AbortController();
    return tail(
      {
        api: connectApi({ url, key: 'key', keyAdvice: '', signal: stopping.signal }),
        terminal,
        now: () => 0,
        pause: async () => stopping.abort(),
        signal: stopping.signal,
      },
      {},
    );
  };
}
