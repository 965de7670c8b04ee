/** Credentials that a form sends: an empty field keeps the stored value, and another server gets only a newly typed secret. */
import { expect, test } from 'vitest';
import {
  changedCredentials,
  type Credentials,
  credentialText,
  type TypedCredentials,
} from '../../src/sentences/credential-text.ts';

const CERTIFICATE = { subject: 'CN=one', fingerprint_sha256: 'AB:CD', expires_at: 1_800_000_000 };
const OAUTH2 = {
  token_url: 'https://login.example/token',
  client_id: 'shop',
  client_secret: '…cret',
  client_authentication: 'basic',
  scope: null,
  audience: null,
} as const;
const STORED: Credentials = {
  client_certificate: CERTIFICATE,
  certificate_authority: [CERTIFICATE, { ...CERTIFICATE, subject: 'CN=two' }],
  oauth2: OAUTH2,
};
const UNTOUCHED: TypedCredentials = {
  certificate: '',
  private_key: '',
  certificate_authority: '',
  token_url: '',
  client_id: '',
  client_secret: '',
  client_authentication: 'basic',
  scope: '',
  audience: '',
  removed: [],
};
const AS_STORED = { ...UNTOUCHED, token_url: OAUTH2.token_url, client_id: OAUTH2.client_id };

test.each<[string, Partial<TypedCredentials>, object]>([
  ['nothing', {}, {}],
  [
    'a certificate',
    { certificate: 'C', private_key: 'K' },
    { client_certificate: { certificate: 'C', private_key: 'K' } },
  ],
  [
    'a key without its certificate, for the API to refuse',
    { private_key: 'K' },
    { client_certificate: { certificate: '', private_key: 'K' } },
  ],
  ['an authority', { certificate_authority: 'A' }, { certificate_authority: 'A' }],
  [
    'a new secret',
    { client_secret: 'new' },
    { oauth2: { ...OAUTH2, client_secret: 'new', scope: null, audience: null } },
  ],
  [
    'another scope without the secret, for the API to refuse',
    { scope: 'hooks' },
    { oauth2: { ...OAUTH2, client_secret: '', scope: 'hooks' } },
  ],
  [
    'all three removed, whatever was typed',
    {
      certificate_authority: 'A',
      removed: ['client_certificate', 'certificate_authority', 'oauth2'],
    },
    { client_certificate: null, certificate_authority: null, oauth2: null },
  ],
])('of a webhook that has all three, %s is sent', (_what, typed, sent) => {
  expect(changedCredentials({ ...AS_STORED, ...typed }, STORED, false)).toEqual(sent);
});

test('an untouched form of a new webhook sends no credentials', () => {
  expect(changedCredentials(UNTOUCHED, undefined, false)).toEqual({});
});

test('the OAuth2 client goes to another server with its secret typed again alone', () => {
  expect(changedCredentials(AS_STORED, STORED, true)).toEqual({ oauth2: null });
  const typed = { ...AS_STORED, client_secret: 'again' };
  expect(changedCredentials(typed, STORED, true)).toEqual({
    oauth2: { ...OAUTH2, client_secret: 'again' },
  });
});

test('the line of a webhook names its credentials, and is empty without credentials', () => {
  expect(credentialText(STORED)).toBe(
    'client certificate CN=one, until 2027-01-15; authority CN=one and CN=two; OAuth2 client shop',
  );
  expect(
    credentialText({ client_certificate: null, certificate_authority: null, oauth2: null }),
  ).toBe('');
});
