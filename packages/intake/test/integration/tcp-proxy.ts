/** A TCP way to a server that a test can cut and hold. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** Ends every connection, and each new one at once. */
  cut(): void;
  /** Nothing passes any more, and nobody is told: a partition, or a server that hangs. */
  hold(): void;
  /** What was held passes; new connections are served again. */
  restore(): void;
  close(): Promise<void>;
}

export async function startTcpProxy(host: string, port: number): Promise<TcpProxy> {
  let mode: 'open' | 'cut' | 'held' = 'open';
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    if (mode === 'cut') {
      client.destroy();
      return;
    }
    const upstream = connect(port, host);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
      if (mode === 'held') from.pause();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      mode = 'cut';
      endAll();
    },
    hold() {
      mode = 'held';
      for (const socket of sockets) socket.pause();
    },
    restore() {
      mode = 'open';
      for (const socket of sockets) socket.resume();
    },
    async close() {
      server.close();
      endAll();
      await once(server, 'close');
    },
  };
}
