/**
 * Certificates and keys that OpenSSL reads, and that would do harm. They would harm a program that lists, keeps or uses
 * them.
 */
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import {
  CLIENT_AUTHORITY,
  CLIENT_ONE_CERTIFICATE,
  LONG_SUBJECT_CERTIFICATE,
  WEAK_CERTIFICATE,
} from '@sluice/platform/testing/client-certificates';
import { expect, test } from 'vitest';
import {
  showCertificates,
  whyNoAuthorities,
  whyNoCertificates,
  whyNoPrivateKey,
} from '../../src/endpoint-credentials/client-certificates.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
/** Tag and length of a GeneralizedTime: the certificate has one, its end. */
const TIME = Buffer.from([0x18, 0x0f]);

/** The certificate with another text as its end; its signature is not checked. */
function withEnd(text: string): string {
  const bytes = Buffer.from(new X509Certificate(CLIENT_ONE_CERTIFICATE).raw);
  bytes.write(text, bytes.indexOf(TIME) + TIME.length, 'latin1');
  return `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64')}\n-----END CERTIFICATE-----\n`;
}

test('a certificate whose end is no time is refused: no list could show when it expires', () => {
  expect(whyNoCertificates(withEnd('21240101000000Z'), NOW_MS)).toBeUndefined();
  const [shown] = showCertificates(withEnd('21249901000000Z'));
  expect(shown?.expires_at).toBeNaN();
  expect(whyNoCertificates(withEnd('21249901000000Z'), NOW_MS)).toMatch(/a time cannot be read/);
});

test('an authority that can verify no certificate is refused', () => {
  const nowMs = Date.UTC(2027, 0, 1);
  expect(whyNoAuthorities(CLIENT_ONE_CERTIFICATE, nowMs)).toMatch(/certificate that signed itself/);
  expect(whyNoAuthorities(`${CLIENT_ONE_CERTIFICATE}${CLIENT_AUTHORITY}`, nowMs)).toBeUndefined();
  expect(whyNoAuthorities(CLIENT_AUTHORITY, nowMs)).toBeUndefined();
  // Signed by itself, OpenSSL accepts it for the endpoint that shows it.
  expect(whyNoAuthorities(WEAK_CERTIFICATE, nowMs)).toBeUndefined();
});

test('a long subject is cut to a text that the audit log can keep', () => {
  expect(whyNoCertificates(LONG_SUBJECT_CERTIFICATE, Date.UTC(2027, 0, 1))).toBeUndefined();
  const [{ subject } = { subject: '' }] = showCertificates(LONG_SUBJECT_CERTIFICATE);
  expect(subject).toHaveLength(500);
  expect(subject.isWellFormed()).toBe(true);
});

test('an RSA key with which each handshake would hold up a worker is refused', () => {
  const keyOf = (modulusLength: number): string => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength });
    return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  };
  expect(whyNoPrivateKey(keyOf(4_104), CLIENT_ONE_CERTIFICATE)).toBe('must have at most 4096 bits');
  expect(whyNoPrivateKey(keyOf(2_048), CLIENT_ONE_CERTIFICATE)).toMatch(/key of the certificate/);
});
