/** For tests and chaos runs: a port that nobody listens on. */
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** Free when it returns; another process may take it afterwards. */
export async function findFreePort(): Promise<number> {
  const listener = createServer();
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, 'close');
  return port;
}
