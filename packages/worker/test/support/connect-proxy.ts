/** An egress proxy for tests. */
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { parseProxy, type Proxy } from '@sluice/platform/outgoing/proxy-tunnel';

export interface ConnectProxy {
  readonly proxy: Proxy;
  readonly port: number;
  /** Addresses that requests asked for, as they were sent. */
  readonly asked: string[];
  readonly credentials: (string | undefined)[];
  close(): void;
}

/** Connects to the requested address, or answers with a status: to every request, or to the ones for `refused`. */
export async function startConnectProxy(
  refusal?: number,
  reason = 'No',
  refused = '',
): Promise<ConnectProxy> {
  const asked: string[] = [];
  const credentials: (string | undefined)[] = [];
  const sockets = new Set<Socket>();
  const server = createServer();
  server.on('connect', (request, socket: Socket, head) => {
    asked.push(String(request.url));
    credentials.push(request.headers['proxy-authorization']);
    sockets.add(socket);
    socket.on('error', () => {});
    if (refusal !== undefined && String(request.url).includes(refused)) {
      socket.end(`HTTP/1.1 ${refusal} ${reason}\r\n\r\n`);
      return;
    }
    const { hostname, port } = new URL(`http://${request.url}`);
    const target = connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 Connection established\r\nx-proxy: test\r\n\r\n');
      target.write(head);
      target.pipe(socket).pipe(target);
    });
    target.on('error', () => socket.destroy());
    socket.on('close', () => target.destroy());
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    asked,
    credentials,
    port,
    proxy: parseProxy(`http://127.0.0.1:${port}`),
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
