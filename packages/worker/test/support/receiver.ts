/** Receivers of webhooks for tests: real sockets on this machine whose behaviour the test chooses. */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

export interface Receiver {
  readonly url: string;
  readonly port: number;
  /** Received requests: head and body as sent. */
  readonly requests: readonly string[];
  connectionCount(): number;
  /** Connections that are open now. */
  openCount(): number;
  close(): Promise<void>;
}

export interface ReceivedRequest {
  readonly text: string;
  /** Of this connection, from 1. */
  readonly ordinal: number;
  readonly socket: Socket;
}

/** Calls `onRequest` for each whole request; the client gets the bytes that it writes. */
export async function startReceiver(
  onRequest: (request: ReceivedRequest) => void,
  tls?: TlsOptions,
): Promise<Receiver> {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  let connectionCount = 0;

  const onConnection = (socket: Socket): void => {
    connectionCount++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    socket.on('end', () => socket.end());
    let pending = '';
    let ordinal = 0;
    socket.on('data', (chunk) => {
      pending += chunk.toString('latin1');
      for (let size = requestSize(pending); size !== undefined; size = requestSize(pending)) {
        const text = Buffer.from(pending.slice(0, size), 'latin1').toString('utf8');
        pending = pending.slice(size);
        requests.push(text);
        onRequest({ text, ordinal: ++ordinal, socket });
      }
    });
  };
  const server: Server = tls
    ? createTlsServer({ ...tls }, onConnection)
    : createServer({ allowHalfOpen: true }, onConnection);
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/hook`,
    port,
    requests,
    connectionCount: () => connectionCount,
    openCount: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** An answer with a body; the connection is kept. */
export function answer(status: number, body = '', headers = ''): string {
  return `HTTP/1.1 ${status} Whatever\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;
}

function requestSize(text: string): number | undefined {
  const headSize = text.indexOf('\r\n\r\n') + 4;
  if (headSize < 4) return undefined;
  const bodySize = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, headSize))?.[1] ?? 0);
  return text.length >= headSize + bodySize ? headSize + bodySize : undefined;
}
