/**
 * Sends one POST and tells how it ended; it never throws and never retries, but for one case.
 *
 * - One deadline an attempt, from before the name look-up to the last byte of the body.
 * - Only vetted addresses (`vetted-connection.ts`); redirects are answers like any other.
 * - HTTP/1.1, one request a connection at a time; connections are kept (`connection-pool.ts`).
 * - Of a body the first 16 KB are read, then the connection is cut; nothing is decompressed. So no
 *   answer, however long, takes more memory than that.
 * - A connection that was idle may be closed by the other side at the moment it is used again. When
 *   a **reused** connection breaks before any byte of an answer, the request is sent once more, on
 *   a fresh connection, within the same deadline: otherwise each such moment would cost a healthy
 *   endpoint an hour.
 *
 * Why a client a connection, and not undici's pool: the pool does not say whether a connection was
 * used before, nor does it let go of a connection that is still being opened.
 *
 * Before: `lane-drain.ts` (step 11). After: `http-attempt.ts`, and the answer goes back.
 */
import type { AddressRange } from '@sluice/domain/network-address';
import { ConnectionPool } from './connection-pool.ts';
import { Attempt, Connection, type Target } from './http-attempt.ts';
import type { HttpOutcome, HttpPost } from './http-outcome.ts';
import type { Proxy } from './proxy-tunnel.ts';
import { createVettedConnector, type ResolveName } from './vetted-connection.ts';

export interface HttpClientOptions {
  readonly timeoutMs: number;
  readonly allowPrivateAddresses: boolean;
  /** Networks that are open in any case, but for metadata and the like. */
  readonly allowedNetworks?: readonly AddressRange[];
  /** Connections go through it. */
  readonly proxy?: Proxy | undefined;
  /** Idle connections kept, over all endpoints. */
  readonly idleConnectionsMax?: number;
  /** For tests; the system's look-up by default. */
  readonly resolve?: ResolveName;
}

export interface HttpClient {
  post(request: HttpPost): Promise<HttpOutcome>;
  /** Connections that are open and unused. */
  idleConnections(): number;
  /** Cuts every connection. Call it when no attempt is under way: such an attempt would be called a failure. */
  close(): void;
}

const IDLE_CONNECTIONS_MAX = 2_048;
/** Endpoints that are remembered taken apart; then it begins anew. */
const TARGETS_MAX = 4_096;
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const connector = createVettedConnector(
    {
      allowPrivate: options.allowPrivateAddresses,
      ...(options.allowedNetworks && { allowedNetworks: options.allowedNetworks }),
    },
    options.resolve,
    options.proxy,
  );
  const connections = new ConnectionPool<Connection>(
    (origin, onClosed) => new Connection(origin, connector, onClosed),
    options.idleConnectionsMax ?? IDLE_CONNECTIONS_MAX,
  );
  const targets = new Map<string, Target | undefined>();
  const targetOf = (endpoint: string): Target | undefined => {
    let target = targets.get(endpoint);
    if (target || targets.has(endpoint)) return target;
    if (targets.size === TARGETS_MAX) targets.clear();
    target = parseTarget(endpoint);
    targets.set(endpoint, target);
    return target;
  };
  return {
    post(request) {
      const target = targetOf(request.endpoint);
      if (!target) {
        const message = 'not an http or https URL';
        return Promise.resolve({
          outcome: 'failure',
          failure: 'unusable_endpoint',
          message,
          status: null,
          head: '',
          body: '',
          durationMs: 0,
        });
      }
      return new Promise((resolve) => {
        new Attempt(connections, target, request, options.timeoutMs, resolve).send();
      });
    },
    idleConnections: () => connections.idleCount,
    close: () => connections.close(),
  };
}

/** Undefined for what is no http or https URL. */
function parseTarget(endpoint: string): Target | undefined {
  const url = URL.parse(endpoint);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined;
  const { origin, username, password, pathname, search } = url;
  const credentials = [username, password].map(decodeComponent).join(':');
  return {
    origin,
    path: pathname + search,
    authorization:
      username || password ? `Basic ${Buffer.from(credentials).toString('base64')}` : undefined,
  };
}

/** The part as it was before it was percent-encoded; as it stands where that was never valid. */
function decodeComponent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
