/** For tests and chaos runs: a TCP way to a server that can be cut and held. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** Ends every connection, and each new one at once. */
  cut(): void;
  /** No packet passes any more, and no end gets an error: a partition, or a server that hangs. */
  hold(): void;
  /** The server hears and acts, its answers do not pass. With `cut` after it they are lost. */
  holdAnswers(): void;
  /**
   * On open connections no packet passes ever again, and no end gets an error; new ones are served. Like a firewall
   * that forgot them, or a dead host whose address another one took over.
   */
  forget(): void;
  /** Held packets pass; new connections are served again. */
  restore(): void;
  close(): Promise<void>;
}

/** A way to the server of a URL. */
export interface UrlProxy extends TcpProxy {
  /** The same URL with the proxy's address. */
  readonly url: string;
}

export async function startTcpProxyTo(url: string): Promise<UrlProxy> {
  const address = new URL(url);
  const proxy = await startTcpProxy(address.hostname, Number(address.port));
  address.host = `127.0.0.1:${proxy.port}`;
  return { ...proxy, url: address.href };
}

/** `port` may be a function, called at each connection: a server may come back on another port. */
export async function startTcpProxy(
  host: string,
  port: number | (() => number),
): Promise<TcpProxy> {
  let mode: 'open' | 'cut' | 'held' | 'mute' = 'open';
  const asking = new Set<Socket>();
  const answering = new Set<Socket>();
  const forgotten = new Set<Socket>();
  const server = createServer((client) => {
    client.on('error', () => undefined);
    if (mode === 'cut') {
      client.destroy();
      return;
    }
    const upstream = connect(typeof port === 'number' ? port : port(), host);
    for (const [from, to, sockets] of [
      [client, upstream, asking],
      [upstream, client, answering],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        forgotten.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
    if (mode === 'held') client.pause();
    if (mode !== 'open') upstream.pause();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const each = (act: (socket: Socket) => void, ...sets: Set<Socket>[]) => {
    for (const sockets of sets) for (const socket of sockets) act(socket);
  };
  const pause = (socket: Socket) => void socket.pause();
  const end = (socket: Socket) => void socket.destroy();
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      mode = 'cut';
      each(end, asking, answering);
    },
    hold() {
      mode = 'held';
      each(pause, asking, answering);
    },
    holdAnswers() {
      mode = 'mute';
      each(pause, answering);
    },
    forget() {
      mode = 'open';
      for (const sockets of [asking, answering]) {
        for (const socket of sockets) forgotten.add(socket.pause());
        sockets.clear();
      }
    },
    restore() {
      mode = 'open';
      each((socket) => void socket.resume(), asking, answering);
    },
    async close() {
      server.close();
      each(end, asking, answering, forgotten);
      await once(server, 'close');
    },
  };
}
