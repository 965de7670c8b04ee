/**
 * Certificates and keys as bodies give them (PEM): their checks, and their visible parts.
 *
 * They are checked when they are given, so that a mistake is not first found by deliveries that fail. Only the blocks
 * that OpenSSL itself reads count; text around the PEM blocks is not stored.
 */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { RSA_KEY_BITS_MAX } from '@sluice/platform/outgoing/tls-identity';
import { toStorableText } from '@sluice/domain/values/storable-text';

export const CERTIFICATE_PEM_LENGTH_MAX = 20_000;
export const PRIVATE_KEY_PEM_LENGTH_MAX = 10_000;
export const AUTHORITY_PEM_LENGTH_MAX = 30_000;
const CERTIFICATE_COUNT_MAX = 10;
const SUBJECT_LENGTH_MAX = 500;
const FAULT_LENGTH_MAX = 100;

const BLOCK_BEGIN = '-----BEGIN CERTIFICATE-----';
const BLOCK_END = '-----END CERTIFICATE-----';

/** Identification of a certificate. */
export interface ShownCertificate {
  readonly subject: string;
  /** Upper-case hex, two digits and a colon in turn, as `openssl x509 -fingerprint -sha256` prints it. */
  readonly fingerprint_sha256: string;
  /** Unix seconds. */
  readonly expires_at: number;
}

/** The PEM blocks of certificates in a text, one after another. */
export const certificateBlocks = (pem: string): string =>
  blocksOf(pem)
    .map((block) => `${block}\n`)
    .join('');

/** @param pem - certificates that were found good when they were stored. */
export const showCertificates = (pem: string): ShownCertificate[] =>
  blocksOf(pem).map((block) => {
    const certificate = new X509Certificate(block);
    return {
      // The cut may halve a surrogate pair, which the audit log could not keep.
      subject: toStorableText(
        certificate.subject.replaceAll('\n', ', ').slice(0, SUBJECT_LENGTH_MAX),
      ),
      fingerprint_sha256: certificate.fingerprint256,
      expires_at: Math.floor(Date.parse(certificate.validTo) / 1_000),
    };
  });

/** Each block, from a first line to the next last line. A pattern would need quadratic time for many first lines without a last one. */
function blocksOf(pem: string): string[] {
  const blocks: string[] = [];
  let begin = pem.indexOf(BLOCK_BEGIN);
  while (begin >= 0) {
    const end = pem.indexOf(BLOCK_END, begin);
    if (end < 0) break;
    blocks.push(pem.slice(begin, end + BLOCK_END.length));
    begin = pem.indexOf(BLOCK_BEGIN, end);
  }
  return blocks;
}

/** The fault of certificates, worded to follow their field; undefined if they are valid. */
export function whyNoCertificates(pem: string, nowMs: number): string | undefined {
  if (pem.includes('PRIVATE KEY-----')) return 'must not hold a private key';
  const blocks = blocksOf(pem);
  if (blocks.length === 0)
    return 'must be PEM: text that begins with -----BEGIN CERTIFICATE----- and ends with -----END CERTIFICATE-----';
  if (blocks.length > CERTIFICATE_COUNT_MAX)
    return `must hold at most ${CERTIFICATE_COUNT_MAX} certificates`;
  for (const [place, block] of blocks.entries()) {
    const certificate = parsed(() => new X509Certificate(block));
    const which = blocks.length === 1 ? '' : ` (certificate ${place + 1})`;
    if (!certificate) return `must be PEM of certificates that can be read${which}`;
    const fromMs = Date.parse(certificate.validFrom);
    const untilMs = Date.parse(certificate.validTo);
    // OpenSSL reads a certificate whose times are invalid.
    if (!Number.isFinite(fromMs) || !Number.isFinite(untilMs))
      return `must have a start and an end of validity${which}: a time cannot be read`;
    if (untilMs <= nowMs)
      return `must not be expired${which}: it was valid until ${certificate.validTo}`;
    if (fromMs > nowMs)
      return `must be valid already${which}: it is valid from ${certificate.validFrom} on`;
  }
  return undefined;
}

/**
 * The fault of authorities, worded to follow their field; undefined if they are valid. TLS looks for a chain up to a
 * root, so an intermediate authority alone verifies no certificate. A self-signed certificate of an endpoint is its own root.
 */
export function whyNoAuthorities(pem: string, nowMs: number): string | undefined {
  const why = whyNoCertificates(pem, nowMs);
  if (why !== undefined) return why;
  const hasRoot = blocksOf(pem).some((block) => isSelfSigned(new X509Certificate(block)));
  return hasRoot
    ? undefined
    : 'must hold a certificate that signed itself, of the root authority or of the endpoint; no other certificate could be verified without it';
}

const isSelfSigned = (certificate: X509Certificate): boolean =>
  certificate.subject === certificate.issuer &&
  parsed(() => certificate.verify(certificate.publicKey)) === true;

/**
 * The fault of a certificate's key, worded to follow its field; undefined if it is valid.
 *
 * @param certificate - PEM that was found good; the first one is the key's.
 */
export function whyNoPrivateKey(pem: string, certificate: string): string | undefined {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(pem))
    return 'must not be encrypted with a passphrase: it is encrypted here when it is stored';
  const key = parsed((): KeyObject => createPrivateKey(pem));
  if (!key) return 'must be PEM of a private key that can be read';
  if ((key.asymmetricKeyDetails?.modulusLength ?? 0) > RSA_KEY_BITS_MAX)
    return `must have at most ${RSA_KEY_BITS_MAX} bits`;
  const [first = ''] = blocksOf(certificate);
  const isOfCertificate = parsed(() => new X509Certificate(first).checkPrivateKey(key));
  return isOfCertificate === true
    ? undefined
    : 'must be the key of the certificate; if there are several, of the first one';
}

/** OpenSSL's own objection, such as `EE_KEY_TOO_SMALL`; undefined if TLS can be made with these. */
export function whyNoTls(certificate: string, privateKey: string): string | undefined {
  try {
    // With authorities of its own, so that the well-known ones are not read without need.
    createSecureContext({ cert: certificate, key: privateKey, ca: certificate });
    return undefined;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return `cannot be used for TLS (${code.slice(0, FAULT_LENGTH_MAX)}); send another certificate`;
  }
}

function parsed<Value>(parse: () => Value): Value | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}
