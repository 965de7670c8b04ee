/** For tests and chaos runs: a port that nobody listens on. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below those that Linux, macOS and Windows give to connections that go out (from 32768 on at the lowest): of these any
 * may be taken again before a server that is started has bound it.
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
