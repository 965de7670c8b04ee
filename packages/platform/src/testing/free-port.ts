/** For tests and chaos runs: a port without a listener. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that Linux, macOS and Windows give to outgoing connections (from 32768 on at the lowest). Any of
 * these may be taken again before a started server has bound it.
 */
const FIRST_PORT = 10_240;
const END_PORT = 32_768;

/** A caller that has not bound its port yet must not share it with the next. */
const given = new Set<number>();

/** Free when it returns, and not given before by this process; another process may take it afterwards. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, END_PORT);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const listener = createServer().listen(port, '127.0.0.1');
  try {
    await once(listener, 'listening');
  } catch {
    return false;
  }
  listener.close();
  await once(listener, 'close');
  return true;
}
