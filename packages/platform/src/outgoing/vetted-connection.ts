/**
 * Opens sockets, but only to addresses that the rules allow.
 *
 * A name is resolved here and every address of the answer is checked. The socket connects to a checked address, so a name
 * that changes its answer cannot pass. A literal address is checked as it is, because Node does not look it up.
 *
 * Look-ups go through the system (`getaddrinfo`), so that /etc/hosts and search domains count. They hold one of the
 * process's few look-up threads and cannot be stopped, so a name has one look-up under way at a time, which all wait for.
 * Names whose servers do not answer can hold all of the threads. So if a look-up takes too long, or no name server answers,
 * the addresses of the last look-up are checked anew and used (as in RFC 8767).
 *
 * Used by `worker/src/http/http-client.ts` (step 13) and for identity providers; the rules are `domain/src/delivery/network-address.ts`.
 */
import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import {
  connect as connectTcp,
  isIP,
  type LookupFunction,
  type OnReadOpts,
  type Socket,
} from 'node:net';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { judgeAddress, type AddressPolicy } from '@sluice/domain/delivery/network-address';
import { openTunnel, type Proxy } from './proxy-tunnel.ts';
import { TLS_VERSION_MIN, TlsContexts, type TlsIdentity } from './tls-identity.ts';

/** The code of the refusal to connect. */
export const ADDRESS_REFUSED = 'ADDRESS_REFUSED';

export type ResolveName = (hostname: string) => Promise<LookupAddress[]>;

export interface ConnectTarget {
  readonly protocol: string;
  /** A name or a literal, IPv6 without brackets. */
  readonly hostname: string;
  /** Empty: the protocol's own. */
  readonly port: string;
  /** Of https. Without it there is no client certificate, and the well-known authorities count. */
  readonly tls?: TlsIdentity;
}

/** Connected, or why not. Called once, and not before `openSocket` has returned. */
export type OnOpened = (error: Error | null, socket: Socket | null) => void;

/** A connection from the moment it is being opened. */
export interface OpenedSocket {
  /** Allowed while it is being opened: then there is no callback. */
  destroy(): void;
  /** By the error of TLS. */
  isCertificateBad(): boolean;
}

export interface VettedConnector {
  /**
   * Undefined if the address is refused at once.
   *
   * @param onRead - of a socket without TLS and proxy, bytes may go there instead of through the stream. Its buffer may be
   *   shared with other sockets.
   */
  openSocket(
    target: ConnectTarget,
    onOpened: OnOpened,
    onRead?: OnReadOpts,
  ): OpenedSocket | undefined;
}

/** Of a look-up; leaves three of the four seconds of an attempt. */
const LATE_AFTER_MS = 1_000;
/** Names whose last answer is remembered. */
const ANSWERS_MAX = 4_096;

/**
 * Part of the thirty seconds that a file's owner has for an answer (`worker/src/http/fetch-file.ts`), so that the error
 * names the silent one of the two. It is long enough for many lost packets on the way to the target.
 */
const PROXY_ANSWER_MS_MAX = 20_000;

const TLS_OPTIONS = { minVersion: TLS_VERSION_MIN, ALPNProtocols: ['http/1.1'] } as const;

/**
 * @param resolve - for tests; the system's by default.
 * @param proxy - given if connections must go out through one. The same addresses are refused.
 * @param proxyAnswerMsMax - a later answer counts as its failure.
 */
export function createVettedConnector(
  policy: AddressPolicy,
  resolve: ResolveName = resolveBySystem,
  proxy?: Proxy,
  proxyAnswerMsMax = PROXY_ANSWER_MS_MAX,
): VettedConnector {
  const contexts = new TlsContexts();
  const underWay = new Map<string, Promise<LookupAddress[]>>();
  const lastAnswers = new Map<string, LookupAddress[]>();

  function remember(hostname: string, addresses: LookupAddress[] | undefined): void {
    // The latest last: beyond the bound the first ones are forgotten.
    lastAnswers.delete(hostname);
    if (addresses) lastAnswers.set(hostname, addresses);
    if (lastAnswers.size <= ANSWERS_MAX) return;
    const [longestKnown = ''] = lastAnswers.keys();
    lastAnswers.delete(longestKnown);
  }

  function resolveOnce(hostname: string): Promise<LookupAddress[]> {
    const known = underWay.get(hostname);
    if (known) return known;
    const answer = resolve(hostname).finally(() => underWay.delete(hostname));
    underWay.set(hostname, answer);
    answer.then(
      (addresses) => remember(hostname, addresses),
      (error: NodeJS.ErrnoException) => {
        if (!isUnanswered(error)) remember(hostname, undefined);
      },
    );
    return answer;
  }

  async function resolveInTime(hostname: string): Promise<LookupAddress[]> {
    const answer = resolveOnce(hostname);
    const last = lastAnswers.get(hostname);
    if (!last) return answer;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<LookupAddress[]>((fulfil) => {
      timer = setTimeout(() => fulfil(lastAnswers.get(hostname) ?? last), LATE_AFTER_MS);
    });
    const answerOrLast = answer.catch((error: NodeJS.ErrnoException) => {
      if (isUnanswered(error)) return last;
      throw error;
    });
    return Promise.race([answerOrLast, late]).finally(() => clearTimeout(timer));
  }

  async function resolveVetted(hostname: string): Promise<LookupAddress[]> {
    const addresses = await resolveInTime(hostname);
    const allowed = addresses.filter(
      ({ address }) => judgeAddress(address, policy).outcome === 'allowed',
    );
    if (allowed.length === 0)
      throw refusal(
        hostname,
        addresses.map(({ address }) => address),
        policy,
      );
    return allowed;
  }

  const lookup: LookupFunction = (hostname, options, callback) => {
    resolveVetted(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all || !first) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    );
  };

  return {
    openSocket(target, onOpened, onRead) {
      const { hostname } = target;
      const isLiteral = isIP(hostname) !== 0;
      if (isLiteral && judgeAddress(hostname, policy).outcome === 'refused') {
        queueMicrotask(() => onOpened(refusal(hostname, [hostname], policy), null));
        return undefined;
      }
      const isTls = target.protocol === 'https:';
      const port = Number(target.port || (isTls ? 443 : 80));
      const tls: ConnectionOptions = { ...TLS_OPTIONS, servername: isLiteral ? '' : hostname };
      if (isTls && target.tls)
        try {
          tls.secureContext = contexts.of(target.tls);
        } catch (error) {
          queueMicrotask(() => onOpened(error as Error, null));
          return undefined;
        }
      if (proxy) {
        const addresses = isLiteral
          ? Promise.resolve([hostname])
          : resolveVetted(hostname).then(oneOfEachFamily);
        const targets = addresses.then((all) => all.map((address) => ({ address, port })));
        let secured: TLSSocket | undefined;
        const tunnel = openTunnel(proxy, targets, proxyAnswerMsMax, (error, socket) => {
          if (!socket || !isTls) onOpened(error, socket);
          else secured = onceOpen(connectTls({ ...tls, host: hostname, socket }), true, onOpened);
        });
        return {
          destroy: () => {
            tunnel.destroy();
            secured?.destroy();
          },
          isCertificateBad: () => Boolean(secured?.authorizationError),
        };
      }
      const address = { host: hostname, port, lookup };
      const socket = isTls
        ? connectTls({ ...address, ...tls })
        : connectTcp(onRead ? { ...address, onread: onRead } : address);
      socket.setNoDelay(true);
      onceOpen(socket, isTls, onOpened);
      return {
        destroy: () => void socket.destroy(),
        isCertificateBad: () =>
          'authorizationError' in socket && Boolean(socket.authorizationError),
      };
    },
  };
}

/**
 * For a proxy: the system orders addresses for our network, and the proxy's may differ. IPv4 first, for a proxy without a
 * way to IPv6 is more common than the reverse, and its refusal may take long.
 */
const oneOfEachFamily = (addresses: readonly LookupAddress[]): string[] =>
  [4, 6].flatMap((family) => addresses.find((each) => each.family === family)?.address ?? []);

function onceOpen<Opening extends Socket>(
  socket: Opening,
  isTls: boolean,
  onOpened: OnOpened,
): Opening {
  const onFailed = (error: Error): void => onOpened(error, null);
  socket.once('error', onFailed);
  socket.once(isTls ? 'secureConnect' : 'connect', () => {
    onOpened(null, socket);
    // Only now: from here on the user of the socket listens for its errors.
    socket.off('error', onFailed);
  });
  return socket;
}

/** No name server answered for the name, so it may still exist. */
const isUnanswered = ({ code }: NodeJS.ErrnoException): boolean => code === 'EAI_AGAIN';

export function resolveBySystem(hostname: string): Promise<LookupAddress[]> {
  return new Promise((fulfil, reject) => {
    systemLookup(hostname, { all: true, verbatim: true }, (error, addresses) => {
      if (error) reject(error);
      else fulfil(addresses);
    });
  });
}

function refusal(
  hostname: string,
  addresses: readonly string[],
  policy: AddressPolicy,
): NodeJS.ErrnoException {
  const kinds = addresses.map((address) => {
    const verdict = judgeAddress(address, policy);
    return verdict.outcome === 'refused' ? verdict.kind : 'allowed';
  });
  const error: NodeJS.ErrnoException = new Error(
    `${hostname}: refused address (${[...new Set(kinds)].join(', ')})`,
  );
  error.code = ADDRESS_REFUSED;
  return error;
}
