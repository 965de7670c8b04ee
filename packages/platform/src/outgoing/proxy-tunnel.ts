/**
 * A tunnel through an egress proxy: `CONNECT address:port`, and from there on the socket is the target's. The proxy gets an
 * address that was checked (`vetted-connection.ts`), never a name, so it cannot resolve the name differently.
 *
 * A refusal of the proxy, and a proxy that is away or does not answer in time, are not the endpoint's failure: all are
 * `PROXY_FAILED`, which goes to backoff at once.
 */
import { connect, type Socket } from 'node:net';
import { reasonOf } from '@sluice/domain/values/errors';

/** The code of a failure of the way to the endpoint. */
export const PROXY_FAILED = 'PROXY_FAILED';

const HEAD_BYTES_MAX = 8 * 1024;

/**
 * No way through the proxy. The message is for the owner of the target, so it has neither the proxy's address nor its words.
 * `cause` has both, for the operator.
 */
export class ProxyFailure extends Error {
  readonly code = PROXY_FAILED;
  /**
   * The proxy answered that its target failed (502, 503, 504), or is silent here while it answers others. Either side may be
   * at fault.
   */
  readonly mayBeOfTarget: boolean;

  constructor({ hostname, port }: Proxy, what: string, detail: string, mayBeOfTarget: boolean) {
    const cause = new Error(`the egress proxy ${hostname}:${port}: ${detail}`);
    super(`the egress proxy: ${what}`, { cause });
    this.mayBeOfTarget = mayBeOfTarget;
  }
}

/** Parsed from `WEBHOOK_PROXY_URL`. */
export interface Proxy {
  readonly hostname: string;
  readonly port: number;
  /** The header's value, if the proxy wants one. */
  readonly authorization: string | undefined;
}

/** @throws TypeError if it is no http URL. */
export function parseProxy(url: string): Proxy {
  const { protocol, hostname, port, username, password } = new URL(url);
  if (protocol !== 'http:') throw new TypeError('a proxy is an http URL');
  const credentials = [username, password].map(decodeURIComponent).join(':');
  return {
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || 80),
    authorization:
      username === '' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`,
  };
}

/** An IP address, IPv6 without brackets. */
interface TunnelTarget {
  readonly address: string;
  readonly port: number;
}

/** A tunnel from the moment it is being opened. */
interface OpenedTunnel {
  /** Allowed while it is being opened: then there is no callback. */
  destroy(): void;
}

/**
 * Number of answers of any kind. A proxy that hangs answers no client. A proxy that waits for a target which drops packets
 * goes on answering others.
 */
const answerCounts = new WeakMap<Proxy, number>();
const answerCountOf = (proxy: Proxy): number => answerCounts.get(proxy) ?? 0;

/**
 * Opens a tunnel to the first address of `targets`, at least one, that the proxy lets through. Calls `onOpened` once, after
 * this has returned, and not at all once the tunnel is destroyed.
 *
 * @param answerMsMax - from the time at which the targets are known, over all of them: later it is a `ProxyFailure`.
 */
export function openTunnel(
  proxy: Proxy,
  targets: Promise<readonly TunnelTarget[]>,
  answerMsMax: number,
  onOpened: (error: Error | null, socket: Socket | null) => void,
): OpenedTunnel {
  let count = 0;
  let timer: NodeJS.Timeout | undefined;
  const end = (error: Error | null, socket: Socket | null): void => {
    clearTimeout(timer);
    timer = undefined;
    onOpened(error, socket);
  };
  const tryAt = (place: number): Socket => {
    const target = targets.then((all) => {
      count = all.length;
      return all[place] as TunnelTarget;
    });
    const socket = openTunnelTo(proxy, target, (error) => {
      if (!error) end(null, socket);
      else if (place + 1 < count && error instanceof ProxyFailure) current = tryAt(place + 1);
      else end(error, null);
    });
    return socket;
  };
  let current = tryAt(0);
  let isOver = false;
  targets.then(
    () => {
      if (isOver || current.destroyed) return;
      const before = answerCountOf(proxy);
      timer = setTimeout(() => {
        // A destroyed socket makes no callback.
        current.on('error', () => {}).destroy();
        const what = `no answer within ${answerMsMax / 1_000} s`;
        end(new ProxyFailure(proxy, what, what, answerCountOf(proxy) > before), null);
      }, answerMsMax);
    },
    // The try itself reports it.
    () => {},
  );
  return {
    destroy() {
      isOver = true;
      clearTimeout(timer);
      current.destroy();
    },
  };
}

/** Destroy the socket to prevent the callback. */
function openTunnelTo(
  proxy: Proxy,
  target: Promise<TunnelTarget>,
  onOpened: (error: Error | null) => void,
): Socket {
  const socket = connect(proxy.port, proxy.hostname);
  socket.setNoDelay(true);
  let head = Buffer.alloc(0);
  const end = (error: Error | null): void => {
    socket.off('error', onError).off('close', onClose).off('data', onData);
    // A caller that destroys the socket later need not listen.
    if (error) socket.on('error', () => {}).destroy();
    onOpened(error);
  };
  const failure = (what: string, detail = what, mayBeOfTarget = false): ProxyFailure =>
    new ProxyFailure(proxy, what, detail, mayBeOfTarget);
  const onError = (error: NodeJS.ErrnoException): void =>
    end(failure(error.code ?? 'the connection failed', reasonOf(error)));
  const onClose = (): void => {
    // If we destroyed it, no caller waits. If the proxy ended it, no more bytes come.
    if (socket.readableEnded) end(failure('it closed the connection'));
  };
  const onData = (chunk: Buffer): void => {
    head = Buffer.concat([head, chunk]);
    const size = head.indexOf('\r\n\r\n') + 4;
    if (size < 4) {
      if (head.length > HEAD_BYTES_MAX) end(failure('its answer has no end'));
      return;
    }
    answerCounts.set(proxy, answerCountOf(proxy) + 1);
    const statusLine = head.toString('latin1', 0, head.indexOf('\r\n'));
    const status =
      /^HTTP\/1\.[01] (\d{3})(?!\d)/.exec(statusLine)?.[1] ?? 'something else than HTTP/1.1';
    if (!status.startsWith('2')) {
      const detail = `it answered ${statusLine.slice(0, 100)}`;
      end(failure(`it answered ${status}`, detail, status.startsWith('5')));
      return;
    }
    socket.pause();
    if (head.length > size) socket.unshift(head.subarray(size));
    end(null);
  };
  socket.on('error', onError).on('close', onClose).on('data', onData);
  target.then(
    ({ address, port }) => {
      if (socket.destroyed) return;
      const authority = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
      const authorization = proxy.authorization
        ? `Proxy-Authorization: ${proxy.authorization}\r\n`
        : '';
      socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`);
    },
    (error: Error) => {
      if (!socket.destroyed) end(error);
    },
  );
  return socket;
}
