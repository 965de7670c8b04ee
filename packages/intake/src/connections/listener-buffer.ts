/**
 * Receive buffer of the connections of a port, by its listening socket: the kernel gives it to each accepted connection.
 *
 * Neither uWebSockets.js nor Node sets it for TCP. Node sets it for UDP, by a call that takes any socket. But this process
 * watches the socket already and may not open it twice, so a child process inherits it, sets it and ends, in 50 ms.
 *
 * Used by `receive-buffer.ts`, at the start.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The kernel doubles it, for its own records: 416 KB. It is the default of `net.core.rmem_max`. */
const ASKED_SIZE_BYTES = 212_992;
const CHILD_MS_MAX = 10_000;
const LISTENING = '0A';

/** It writes the size that the kernel has set; of an error it writes no number. */
const CHILD = `
const { UDP } = process.binding('udp_wrap');
const socket = new UDP();
socket.open(3);
socket.bufferSize(${ASKED_SIZE_BYTES}, true, {});
process.stdout.write(String(socket.bufferSize(0, true, {})));`;

/**
 * @param port - that this process listens on.
 * @param nodePath - of the program that runs this process.
 * @returns the size of the buffer in bytes; `undefined` if it could not be set. Only Linux lets it be set here.
 */
export async function setListenerBuffer(
  port: number,
  nodePath: string,
): Promise<number | undefined> {
  try {
    const descriptor = listenerOf(port);
    if (descriptor === undefined) return undefined;
    const child = spawn(nodePath, ['-e', CHILD], {
      env: {},
      stdio: ['ignore', 'pipe', 'ignore', descriptor],
      timeout: CHILD_MS_MAX,
    });
    const closed = once(child, 'close');
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (part: string) => (text += part));
    await closed;
    const sizeBytes = Number(text);
    return sizeBytes > 0 ? sizeBytes : undefined;
  } catch {
    // There is no such program, or no `/proc`.
    return undefined;
  }
}

/** Other processes may listen on the port too. */
function listenerOf(port: number): number | undefined {
  const links = new Set([...inodesOf(port, 'tcp'), ...inodesOf(port, 'tcp6')].map(linkOf));
  const name = readdirSync('/proc/self/fd').find((each) => links.has(linkAt(each)));
  return name === undefined ? undefined : Number(name);
}

const linkOf = (inode: string): string => `socket:[${inode}]`;

/** Empty for a descriptor that has been closed meanwhile. */
function linkAt(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return '';
  }
}

function inodesOf(port: number, protocol: 'tcp' | 'tcp6'): string[] {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  let table: string;
  try {
    table = readFileSync(`/proc/self/net/${protocol}`, 'utf8');
  } catch {
    // A kernel without IPv6 has no table of it.
    return [];
  }
  return table.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
    return state === LISTENING && local.endsWith(end) ? [inode] : [];
  });
}
