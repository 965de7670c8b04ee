/**
 * A client certificate, and the authorities that one webhook trusts.
 *
 * Connections are kept by the identity's key beside their origin (`worker/src/http/http-client.ts`): a request never goes out over a
 * connection that was opened with another certificate, or trusted by other authorities.
 */
import { createHash, createPrivateKey } from 'node:crypto';
import tls, { type SecureContext } from 'node:tls';

export interface TlsIdentity {
  /** Equal for equal identities only. */
  readonly key: string;
  readonly certificate: string | undefined;
  readonly privateKey: string | undefined;
  /** PEM: trusted in place of the well-known authorities. */
  readonly authority: string | undefined;
  /** The well-known authorities are trusted too. */
  readonly trustsPublic: boolean;
}

/** Undefined if TLS is the same as of any other request. */
export function tlsIdentity(parts: Omit<TlsIdentity, 'key'>): TlsIdentity | undefined {
  const { certificate, privateKey, authority, trustsPublic } = parts;
  if (certificate === undefined && authority === undefined) return undefined;
  const text = JSON.stringify([certificate, privateKey, authority, trustsPublic]);
  return { ...parts, key: createHash('sha256').update(text).digest('base64') };
}

/** Beyond it the memory begins anew: a context is made within a millisecond. */
const CONTEXTS_MAX = 512;
export const TLS_VERSION_MIN = 'TLSv1.2';
/**
 * A process signs with the key whenever an endpoint opens a connection anew, and does no other work meanwhile: 4 ms with
 * 4,096 bits, 200 ms with 15,360.
 */
export const RSA_KEY_BITS_MAX = 4_096;

export class TlsContexts {
  readonly #contexts = new Map<string, SecureContext>();

  /**
   * @throws the error of OpenSSL if a certificate, a key or an authority cannot be used; an error with the code
   *   `ERR_TLS_KEY_TOO_LARGE` if the key was stored before it had a bound.
   */
  of(identity: TlsIdentity): SecureContext {
    const known = this.#contexts.get(identity.key);
    if (known) return known;
    if (this.#contexts.size === CONTEXTS_MAX) this.#contexts.clear();
    const { certificate, privateKey, authority, trustsPublic } = identity;
    if (privateKey !== undefined && isTooLarge(privateKey))
      throw Object.assign(new Error('the key of the client certificate is too large'), {
        code: 'ERR_TLS_KEY_TOO_LARGE',
      });
    // Named authorities replace the ones that Node trusts by itself.
    const ca =
      authority === undefined
        ? undefined
        : [...(trustsPublic ? tls.getCACertificates('default') : []), authority];
    const context = tls.createSecureContext({
      minVersion: TLS_VERSION_MIN,
      cert: certificate,
      key: privateKey,
      ca,
    });
    this.#contexts.set(identity.key, context);
    return context;
  }
}

/** @throws the error of OpenSSL if the key cannot be read. */
const isTooLarge = (privateKey: string): boolean =>
  (createPrivateKey(privateKey).asymmetricKeyDetails?.modulusLength ?? 0) > RSA_KEY_BITS_MAX;
