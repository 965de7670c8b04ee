/**
 * Receive buffer of the kernel for each connection. Used by `main.ts` at the start, for `body/body-reads.ts`.
 *
 * uWebSockets.js reads 512 KB at once, and goes on in the same turn of the event loop as long as the kernel has as many. A
 * client in Go or Java makes small chunks faster than they are handed over, so with a large buffer such a turn is endless.
 * With a small one uWebSockets.js never gets 512 KB: each turn is short, a pause takes effect after it, and every sender
 * is taken to its end.
 */
import { readFileSync } from 'node:fs';
import type { Logger } from '@sluice/platform/process/logger';
import { setListenerBuffer } from './listener-buffer.ts';

/** The kernel counts its own records as well, so such a buffer never has 512 KB of bytes. */
const SMALL_BUFFER_SIZE_BYTES_MAX = 512 * 1_024;

/**
 * @param nodePath - of the program that runs this process.
 * @returns gives the connections that come from now on to a port of this process a small buffer, unless the kernel does.
 * False if that is not possible; then a line of the log names the setting of the kernel.
 */
export const receiveBuffersBy =
  (nodePath: string, mode: string, logger: Pick<Logger, 'info'>) =>
  async (port: number): Promise<boolean> => {
    if (isReceiveBufferSmall()) return true;
    const sizeBytes = (await setListenerBuffer(port, nodePath)) ?? Infinity;
    if (sizeBytes <= SMALL_BUFFER_SIZE_BYTES_MAX) return true;
    if (mode === 'production')
      logger.info(
        'the kernel keeps more of a connection than intake reads at once, so a fast sender of small chunks may be cut; set the third value of net.ipv4.tcp_rmem to 524288, or put a proxy in front',
      );
    return false;
  };

/** True if no connection can have a larger buffer: the third value of `net.ipv4.tcp_rmem`. False if it is not known. */
export function isReceiveBufferSmall(): boolean {
  try {
    const [, , sizeBytesMax] = readFileSync('/proc/sys/net/ipv4/tcp_rmem', 'utf8').split(/\s+/);
    return Number(sizeBytesMax) <= SMALL_BUFFER_SIZE_BYTES_MAX;
  } catch {
    // Only Linux has the file.
    return false;
  }
}
