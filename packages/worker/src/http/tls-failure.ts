/**
 * Sentences about a TLS failure, for a webhook's owner. OpenSSL's own texts name its source files and functions, and
 * change with its version. The code stands behind the sentence, for a look-up.
 */

const SENTENCES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'the certificate, or one above it, has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  CERT_REVOKED: 'the certificate was revoked',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is signed by itself, not by a known authority',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate comes from an authority that is not known',
  UNABLE_TO_GET_ISSUER_CERT:
    'the certificates do not lead to a known authority: is one missing between?',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'the certificates do not lead to a known authority: is one missing between?',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'the certificates do not lead to a known authority: is one missing between?',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for other names than the name of the endpoint',
  ERR_SSL_WRONG_VERSION_NUMBER: 'what answers at this port does not speak TLS: is it for http?',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'what answers at this port does not speak TLS: is it for http?',
  ERR_SSL_HTTP_REQUEST: 'what answers at this port does not speak TLS: is it for http?',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'the endpoint speaks no version of TLS from 1.2 on',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'the endpoint speaks no version of TLS from 1.2 on',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    'the endpoint asks for a client certificate, which was not sent',
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA:
    'the endpoint does not know the authority of the client certificate',
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: 'the endpoint does not accept the client certificate',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: 'the endpoint does not accept the client certificate',
  ERR_SSL_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    'the endpoint does not accept the client certificate',
  ERR_SSL_TLSV1_ALERT_ACCESS_DENIED: 'the endpoint does not accept the client certificate',
  ERR_SSL_TLSV1_ALERT_DECRYPT_ERROR: 'the endpoint does not accept the client certificate',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: 'the client certificate has expired',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED: 'the client certificate was revoked',
  ERR_TLS_KEY_TOO_LARGE: 'the key of the client certificate has more than 4,096 bits',
  ERR_SSL_UNSAFE_LEGACY_RENEGOTIATION_DISABLED: 'the endpoint wants an unsafe renegotiation of TLS',
  ERR_SSL_DH_KEY_TOO_SMALL: 'the key of the endpoint is too short',
  ERR_SSL_EE_KEY_TOO_SMALL: 'the key of the endpoint is too short',
  ERR_SSL_TLSV1_UNRECOGNIZED_NAME: 'the endpoint has no certificate for this name',
  ERR_SSL_TLSV1_ALERT_UNRECOGNIZED_NAME: 'the endpoint has no certificate for this name',
};

/**
 * One sentence, and the code in brackets if there is one.
 *
 * @param code - of OpenSSL or of Node: `CERT_HAS_EXPIRED`, `ERR_SSL_…`.
 */
export function tlsFailureMessage(code: string, isCertificateBad: boolean): string {
  const sentence = Object.hasOwn(SENTENCES, code)
    ? SENTENCES[code]
    : isCertificateBad
      ? 'the certificate was not accepted'
      : 'no TLS connection could be agreed on';
  // Only a code of theirs is shown: the text may come from the bytes of the other side.
  return /^[A-Z][A-Z0-9_]{2,80}$/.test(code) ? `${sentence} (${code})` : `${sentence}`;
}
