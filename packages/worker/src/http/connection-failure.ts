/**
 * Sentences about a connection's failure before an answer, for a webhook's owner. `tls-failure.ts` has the sentences
 * for TLS. Node's own texts name its functions (`getaddrinfo`, `connect`, `read`), and the same loss reads differently
 * with and without TLS. The code stands behind the sentence, for a look-up.
 */

const SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the address and port refuse the connection',
  ECONNRESET: 'the other side ended the connection before the end of its answer',
  ECONNABORTED: 'the other side ended the connection before the end of its answer',
  EPIPE: 'the other side ended the connection before the end of its answer',
  ETIMEDOUT: 'the address does not answer',
  EHOSTUNREACH: 'there is no way to the address',
  EHOSTDOWN: 'there is no way to the address',
  ENETUNREACH: 'there is no way to the network of the address',
  ENETDOWN: 'there is no way to the network of the address',
  EADDRNOTAVAIL: 'there is no way to the address',
  EACCES: 'connections to the address are not permitted',
  EPERM: 'connections to the address are not permitted',
  ENOTFOUND: 'the name has no address',
  ENODATA: 'the name has no address',
  EAI_AGAIN: 'the name could not be looked up: no name server answers',
  EAI_FAIL: 'the name could not be looked up: the name server failed',
};

/** No name or address is longer. */
const WHERE_LENGTH_MAX = 300;

/**
 * One sentence, with the name or the address if Node names it, and the code in brackets.
 *
 * @param error - of a socket or of a look-up of a name. Undefined is returned if its code is not in the list.
 */
export function connectionFailureMessage(error: NodeJS.ErrnoException): string | undefined {
  const { code = '' } = error;
  const sentence = Object.hasOwn(SENTENCES, code) ? SENTENCES[code] : undefined;
  if (sentence === undefined) return undefined;
  const where = whereOf(error);
  return where === undefined ? `${sentence} (${code})` : `${sentence}: ${where} (${code})`;
}

/** `shop.example`, `192.0.2.7:443` or `[2001:db8::7]:443`. */
function whereOf(error: Error): string | undefined {
  const { hostname, address, port } = error as Error & {
    readonly hostname?: unknown;
    readonly address?: unknown;
    readonly port?: unknown;
  };
  if (typeof hostname === 'string') return hostname.slice(0, WHERE_LENGTH_MAX);
  if (typeof address !== 'string' || typeof port !== 'number') return undefined;
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}
