/**
 * Bounds the connections that one address holds at the same time.
 *
 * A connection costs its owner a few packets a minute, and this process a file and 10 KB. An address that opens more than
 * the bound has the new ones cut. The addresses of an IPv6 network are one. A trusted proxy holds the connections of all
 * callers, so it has no bound here: it bounds each of them itself.
 */
import type { Server } from 'node:net';
import { callerNetwork, canonicalAddress } from '@sluice/domain/delivery/network-address';

export interface AddressConnectionsOptions {
  /** 0: no bound. */
  readonly countMax: number;
  /** Whether an address is a trusted proxy's. */
  readonly isProxy: (address: string) => boolean;
}

export function boundAddressConnections(
  server: Server,
  { countMax, isProxy }: AddressConnectionsOptions,
): void {
  if (countMax === 0) return;
  /** By network; an entry is above 0. */
  const counts = new Map<string, number>();
  server.on('connection', (socket) => {
    // Without an address it is closed already.
    if (socket.remoteAddress === undefined) return;
    const address = canonicalAddress(socket.remoteAddress);
    if (isProxy(address)) return;
    const network = callerNetwork(address);
    const count = counts.get(network) ?? 0;
    if (count >= countMax) {
      socket.destroy();
      return;
    }
    counts.set(network, count + 1);
    socket.once('close', () => {
      const left = (counts.get(network) ?? 0) - 1;
      if (left > 0) counts.set(network, left);
      else counts.delete(network);
    });
  });
}
